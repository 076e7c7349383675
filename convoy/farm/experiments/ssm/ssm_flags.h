// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep ssm`, with the names and defaults of the program that its users come
// from, and the cells they stand for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::experiments {

struct SsmFlags {
  int64_t num_seeds = 8;
  std::vector<int64_t> seeds;
  int64_t sequence_length = 5;
  int64_t num_sequences = 1;
  bool input_e1 = false;
  std::vector<int64_t> teacher_ranks = {1};
  std::vector<int64_t> student_dims = {150, 175, 200, 225, 250, 275, 300};
  double eps_train = 1e-5;
  bool calc_loss_only_on_last_output = true;
  bool w_that_minimizes_loss = false;
  bool w2_that_minimizes_loss = false;
  bool w2_that_maximizes_loss = false;
  std::string data_file;
  bool gnc = true;
  int64_t gnc_num_samples = 100'000'000;
  int64_t gnc_batch_size = kBatchSize;
  bool gd = false;
  double gd_lr = 1e-3;
  int64_t gd_epochs = 10'000;
  double gd_init_scale = 1e-2;
  std::string gd_optimizer = "adam";
  std::string gd_scheduler = "none";
  std::map<std::string, double> gd_scheduler_params;
  double exp_gamma = 0.999;
  int64_t step_size = 1000;
  double step_gamma = 0.1;
  double cosine_eta_min = 0;
  std::string gd_init_type = "regular";
  std::string config;
  std::string figures_dir;
  std::string checkpoint_dir;
  int64_t checkpoint_interval = kCheckpointInterval;
  std::string resume_from_checkpoint;
  int64_t max_gpus = -1;
  std::string device = "auto";
  std::string mode = "exact";
  double target_standard_error = 0;
  int64_t target_accepted = 0;
  int64_t sweep_seed = 0;
  std::string shortcut = "none";
  std::string preset;

  static constexpr int64_t kBatchSize = 500'000;
  static constexpr int64_t kCheckpointInterval = 3600;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("num_seeds", num_seeds, "seeds 0 to N - 1").at_least(1);
    visit("seeds", seeds, "these seeds, in place of --num-seeds");
    visit("sequence_length", sequence_length, "length of the input sequences")
        .at_least(2)
        .at_most(17);
    visit("num_sequences", num_sequences, "training sequences")
        .at_least(1)
        .alias("num_measurements");
    visit("input_e1", input_e1, "the one sequence is an impulse: w = e_1");
    visit("teacher_ranks", teacher_ranks, "ranks of the teacher");
    visit("student_dims", student_dims, "states of the student");
    visit("eps_train", eps_train, "a guess passes with a smaller training loss").above(0);
    visit("calc_loss_only_on_last_output", calc_loss_only_on_last_output,
          "training loss of the last output; else of all");
    visit("w_that_minimizes_loss", w_that_minimizes_loss, "choose w_2 for the least asymptote");
    visit("w2_that_minimizes_loss", w2_that_minimizes_loss,
          "choose the second sequence for the least asymptote");
    visit("w2_that_maximizes_loss", w2_that_maximizes_loss, "the opposite");
    visit("data_file", data_file, "JSON list of {alpha, w} or {alpha, w_sequences}, by seed");
    visit("gnc", gnc, "guess and check");
    visit("gnc_num_samples", gnc_num_samples, "guesses of each cell").at_least(1);
    visit("gnc_batch_size", gnc_batch_size, "ignored: results do not depend on batches")
        .hidden()
        .at_least(1);
    visit("gd", gd, "gradient descent");
    visit("gd_lr", gd_lr, "learning rate").above(0);
    visit("gd_epochs", gd_epochs, "steps").at_least(1);
    visit("gd_init_scale", gd_init_scale, "standard deviation of the initial weights").at_least(0);
    visit("gd_optimizer", gd_optimizer, "adam, or gd for plain descent").one_of({"adam", "gd"});
    visit("gd_scheduler", gd_scheduler, "learning rate over time")
        .one_of({"none", "step", "exponential", "cosine", "adaptive"});
    visit("gd_scheduler_params", gd_scheduler_params,
          "the schedule's parameters as JSON: step_size, gamma, eta_min");
    visit("exp_gamma", exp_gamma, "exponential: factor of each epoch").above(0);
    visit("step_size", step_size, "step: epochs between steps").at_least(1);
    visit("step_gamma", step_gamma, "step: factor of each step").above(0);
    visit("cosine_eta_min", cosine_eta_min, "cosine: final learning rate").at_least(0);
    visit("gd_init_type", gd_init_type, "initial weights")
        .one_of({"regular", "near_one", "double_max_A_j", "positive_diagonal"});
    visit("config", config, "JSON or YAML file of these flags; the command line wins");
    visit("figures_dir", figures_dir, "folder of figures; empty = none are drawn");
    visit("checkpoint_dir", checkpoint_dir, "folder of the store; empty = --results-dir");
    visit("checkpoint_interval", checkpoint_interval,
          "ignored: every finished range is stored at once")
        .hidden();
    visit("resume_from_checkpoint", resume_from_checkpoint,
          "ignored: the same command always continues")
        .hidden();
    visit("max_gpus", max_gpus, "this many GPUs at most; -1 = all").at_least(-1);
    visit("device", device, "devices that guess: auto = all GPUs and CPUs, cuda = only GPUs, cpu")
        .one_of({"auto", "cuda", "cpu"})
        .flag("devices");
    visit("mode", mode, "fast: shorter polynomials and fewer random bits than exact; other numbers")
        .one_of({"exact", "fast"});
    visit("target_standard_error", target_standard_error,
          "a cell ends at this standard error of its mean loss; 0 = off")
        .at_least(0);
    visit("target_accepted", target_accepted, "a cell ends at this many accepted guesses; 0 = off")
        .at_least(0);
    visit("sweep_seed", sweep_seed, "another sweep of the same seeds").at_least(0);
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
