// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep ssm`, with the names and defaults of the program that its users come
// from, and the cells they stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/farm/experiments/shared_flags.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"
#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::experiments {

struct SsmFlags : GuessFlags, GpuFlags {
  SsmParameters common;  // shared by all cells; words of its enumerations are below
  std::vector<int64_t> teacher_ranks = {1};
  std::vector<int64_t> student_dims = {150, 175, 200, 225, 250, 275, 300};
  std::string data_file;
  int64_t gnc_batch_size = kBatchSize;
  std::string gd_optimizer = "adam";
  std::string gd_scheduler = "none";
  config::OrderedMap<double> gd_scheduler_params;
  std::string gd_init_type = "regular";
  int64_t checkpoint_interval = kCheckpointInterval;
  std::string resume_from_checkpoint;
  std::string shortcut = "none";
  std::string preset;

  static constexpr int64_t kBatchSize = 500'000;
  static constexpr int64_t kCheckpointInterval = 3600;

  SsmFlags() { gd = false; }

  template <class Visitor>
  void fields(Visitor& visit) {
    GuessFlags::fields(visit);
    visit("sequence_length", common.sequence_length, "length of the input sequences")
        .at_least(2)
        .at_most(17);
    visit("num_sequences", common.num_sequences, "training sequences")
        .at_least(1)
        .alias("num_measurements");
    visit("input_e1", common.input_e1, "the one sequence is an impulse: w = e_1");
    visit("teacher_ranks", teacher_ranks, "ranks of the teacher");
    visit("student_dims", student_dims, "states of the student");
    visit("eps_train", common.eps_train, "a guess passes with a smaller training loss").above(0);
    visit("calc_loss_only_on_last_output", common.calc_loss_only_on_last_output,
          "training loss of the last output; else of all");
    visit("w_that_minimizes_loss", common.w_that_minimizes_loss,
          "choose w_2 for the least asymptote");
    visit("w2_that_minimizes_loss", common.w2_that_minimizes_loss,
          "choose the second sequence for the least asymptote");
    visit("w2_that_maximizes_loss", common.w2_that_maximizes_loss, "the opposite");
    visit("data_file", data_file, "JSON list of {alpha, w} or {alpha, w_sequences}, by seed");
    visit("gnc_batch_size", gnc_batch_size, "ignored: results do not depend on batches")
        .hidden()
        .at_least(1);
    visit("gd_lr", common.descent.lr, "learning rate").above(0);
    visit("gd_epochs", common.descent.epochs, "steps").at_least(1);
    visit("gd_init_scale", common.descent.init_scale, "standard deviation of the initial weights")
        .at_least(0);
    visit("gd_optimizer", gd_optimizer, "adam, or gd for plain descent").one_of({"adam", "gd"});
    visit("gd_scheduler", gd_scheduler, "learning rate over time")
        .one_of({"none", "step", "exponential", "cosine", "adaptive"});
    visit("gd_scheduler_params", gd_scheduler_params,
          "the schedule's parameters as JSON: step_size, gamma, eta_min");
    visit("exp_gamma", common.descent.exp_gamma, "exponential: factor of each epoch").above(0);
    visit("step_size", common.descent.step_size, "step: epochs between steps").at_least(1);
    visit("step_gamma", common.descent.step_gamma, "step: factor of each step").above(0);
    visit("cosine_eta_min", common.descent.cosine_eta_min, "cosine: final learning rate")
        .at_least(0);
    visit("gd_init_type", gd_init_type, "initial weights")
        .one_of({"regular", "near_one", "double_max_A_j", "positive_diagonal"});
    visit("checkpoint_interval", checkpoint_interval,
          "ignored: every finished range is stored at once")
        .hidden();
    visit("resume_from_checkpoint", resume_from_checkpoint,
          "ignored: the same command always continues")
        .hidden();
    GpuFlags::fields(visit);
    visit("sweep_seed", common.sweep_seed, "another sweep of the same seeds").at_least(0);
    visit("shortcut", shortcut,
          "draw fewer numbers of the same distribution: two_randoms for sequence_length 2 and 3, "
          "projection where the training loss sees one power, auto for the best that is allowed")
        .one_of({"none", "two_randoms", "projection", "auto"});
    visit(
        "preset", preset,
        "published: the runs of the papers' first figure; first: an early experiment with teachers "
        "and students of N(0, 1); other flags win")
        .one_of({"", "published", "first"});
  }

  // The defaults of a preset. Throws ConfigError for one that is not known.
  void apply_preset(const std::string& name);
  // One line per flag that was given and has no meaning any more.
  std::vector<std::string> notices() const;
};

// Warnings about settings whose result is likely to surprise the user.
std::vector<std::string> ssm_warnings(const SsmFlags& flags);

// Throws ConfigError, DataError (the data file).
sweep::SweepPlan plan_ssm(const SsmFlags& flags);

WorkloadKind ssm_kind();

}  // namespace convoy::experiments
