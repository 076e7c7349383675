// SPDX-License-Identifier: Apache-2.0
//
// Workload `ball`: the volume of the unit ball by random points of the cube around it, beside its
// closed form. The smallest workload that does all that one does: a pattern to copy, and a quick
// check of an installation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

struct BallFlags {
  std::vector<int64_t> dims = {2, 3, 4};
  int64_t num_seeds = 2;
  std::vector<int64_t> seeds;
  int64_t num_points = 1'000'000;
  double target_standard_error = 0;
  std::string config;
  std::string figures_dir;
  std::string checkpoint_dir;

  static constexpr int64_t kMostDims = 64;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dims", dims, "dimensions of the ball").at_least(1).at_most(kMostDims);
    visit("num_seeds", num_seeds, "seeds 0 to N - 1").at_least(1);
    visit("seeds", seeds, "these seeds, in place of --num-seeds");
    visit("num_points", num_points, "random points of each cell").at_least(1);
    visit("target_standard_error", target_standard_error,
          "a cell ends at this standard error of its volume; 0 = off")
        .at_least(0);
    visit("config", config, "JSON or YAML file of these flags; the command line wins");
    visit("figures_dir", figures_dir, "folder of figures; empty = none are drawn");
    visit("checkpoint_dir", checkpoint_dir, "folder of the store; empty = --results-dir");
  }
};

sweep::SweepPlan plan_ball(const BallFlags& flags);  // throws ConfigError, which names the flag

class BallWorkload : public sweep::Workload {
 public:
  std::string name() const override { return "ball"; }
  std::string version() const override;
  std::unique_ptr<sweep::GuessExperiment> guesses(const sweep::Cell& cell) const override;
  std::vector<sweep::DescentOutcome> descend(const std::vector<sweep::Cell>& cells) const override;
  sweep::Theory theory(const sweep::Cell& cell) const override;  // curve: the exact volume
  std::vector<std::string> axes() const override { return {"dim"}; }
};

WorkloadKind ball_kind();

}  // namespace convoy::experiments
