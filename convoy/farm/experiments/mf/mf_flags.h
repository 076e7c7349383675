// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep mf`, and the cells that they describe. The flags have the names and
// defaults of the program that users had before. The axis is the width where `widths` is given, the
// depth where `depths` is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/shared_flags.h"
#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::experiments {

struct MfFlags : GuessFlags, GpuFlags {
  MfParameters common;  // shared by all cells
  std::vector<int64_t> gnc_batch_sizes;
  std::string shortcut = "none";
  bool prior = true;
  std::vector<double> gd_lrs = {1e-2};
  std::vector<double> gd_init_scales = {1e-2};
  int64_t gd_print_period = kPrintPeriod;
  bool gd_verbose = false;
  std::vector<int64_t> widths;
  config::AutoOr<int64_t> depth;
  std::vector<int64_t> depths;
  config::AutoOr<int64_t> width;

  static constexpr int64_t kPrintPeriod = 10'000;
  static constexpr int64_t kPriorGuesses = 1'000'000;

  template <class Visitor>
  void fields(Visitor& visit) {
    GuessFlags::fields(visit);
    visit("widths", widths, "the width experiment, over these widths; default 5 10 20 40 80 160")
        .at_least(1);
    visit("depth", depth, "layers in the width experiment; auto = 2").at_least(1);
    visit("depths", depths, "the depth experiment, over these numbers of layers").at_least(1);
    visit("width", width, "hidden units in the depth experiment; auto = 5").at_least(1);
    common.problem_fields(visit);
    visit("gnc_batch_sizes", gnc_batch_sizes, "ignored: results do not depend on batches")
        .alias("gnc_batch_size")
        .hidden();
    common.guess_fields(visit);
    visit("shortcut", shortcut,
          "draw fewer numbers of the same distribution: gram for Gaussian layers, bartlett for "
          "linear ones, auto for the best that is allowed")
        .one_of(words_or_auto(mf_shortcut_words()));
    visit("prior", prior,
          "width experiment: where the prior's mean loss has no closed form, a cell of 1e6 guesses "
          "without the check");
    visit("gd_lrs", gd_lrs, "learning rate, one or one for each value of the axis").above(0);
    visit("gd_init_scales", gd_init_scales,
          "scale of the initial weights, one or one for each value of the axis")
        .at_least(0);
    common.descent.fields(visit);
    visit("gd_print_period", gd_print_period, "ignored: descents print nothing").hidden();
    visit("gd_verbose", gd_verbose, "ignored: descents print nothing").hidden();
    GpuFlags::fields(visit);
  }

  bool over_depths() const { return !depths.empty(); }
  // One line per given flag that has no meaning any more, or that has more entries than are used.
  std::vector<std::string> notices() const;
};

// Throws ConfigError, which names the flag.
sweep::SweepPlan plan_mf(const MfFlags& flags);

WorkloadKind mf_kind();

}  // namespace convoy::experiments
