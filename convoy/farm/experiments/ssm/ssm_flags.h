// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep ssm`, and the cells that they describe. The flags have the names and
// defaults of the program that users had before.
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
  SsmParameters common;  // shared by all cells
  std::vector<int64_t> teacher_ranks = {1};
  std::vector<int64_t> student_dims = {150, 175, 200, 225, 250, 275, 300};
  std::string data_file;
  int64_t gnc_batch_size = kBatchSize;
  config::OrderedMap<double> gd_scheduler_params;
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
    common.problem_fields(visit);
    visit("teacher_ranks", teacher_ranks, "ranks of the teacher");
    visit("student_dims", student_dims, "states of the student");
    visit("data_file", data_file, "JSON list of {alpha, w} or {alpha, w_sequences}, by seed");
    visit("gnc_batch_size", gnc_batch_size, "ignored: results do not depend on batches")
        .hidden()
        .at_least(1);
    common.descent.fields(visit);
    visit("gd_scheduler_params", gd_scheduler_params,
          "the schedule's parameters as JSON: step_size, gamma, eta_min");
    visit("checkpoint_interval", checkpoint_interval,
          "ignored: every finished range is stored at once")
        .hidden();
    visit("resume_from_checkpoint", resume_from_checkpoint,
          "ignored: the same command always continues")
        .hidden();
    GpuFlags::fields(visit);
    visit("shortcut", shortcut,
          "draw fewer numbers of the same distribution: two_randoms for sequence_length 2 and 3, "
          "projection where the training loss sees one power, auto for the best that is allowed")
        .one_of(words_or_auto(ssm_shortcut_words()));
    visit(
        "preset", preset,
        "published: the runs of the papers' first figure; first: an early experiment with teachers "
        "and students of N(0, 1); other flags win")
        .one_of({"", "published", "first"});
  }

  // Sets the defaults of a preset. Throws ConfigError for an unknown preset.
  void apply_preset(const std::string& name);
  // One line per given flag that has no meaning any more.
  std::vector<std::string> notices() const;
};

// Warnings about settings whose result is likely to surprise the user.
std::vector<std::string> ssm_warnings(const SsmFlags& flags);

// Throws ConfigError, and DataError for the data file.
sweep::SweepPlan plan_ssm(const SsmFlags& flags);

WorkloadKind ssm_kind();

}  // namespace convoy::experiments
