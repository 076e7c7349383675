// SPDX-License-Identifier: Apache-2.0
//
// Workload `ball`: the volume of the unit ball by random points of the cube around it, beside its
// closed form. It is the smallest complete workload: a pattern to copy for a new one, and a quick
// check of an installation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/shared_flags.h"
#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments {

struct BallFlags : SeedFlags {
  std::vector<int64_t> dims = {2, 3, 4};
  int64_t num_points = 1'000'000;

  static constexpr int64_t kMostDims = 64;

  BallFlags() { num_seeds = 2; }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dims", dims, "dimensions of the ball").at_least(1).at_most(kMostDims);
    visit("num_points", num_points, "random points of each cell").at_least(1);
    SeedFlags::fields(visit);
  }
};

sweep::SweepPlan plan_ball(const BallFlags& flags);  // throws ConfigError, which names the flag

class BallWorkload : public sweep::Workload {
 public:
  std::string name() const override { return "ball"; }
  std::string version() const override;
  std::unique_ptr<sweep::GuessExperiment> guesses(const sweep::Cell& cell) const override;
  std::vector<sweep::CellOutcome> compute(const std::vector<sweep::Cell>& cells) const override;
  sweep::ReferenceCurve reference(
      const sweep::Cell& cell) const override;  // the curve is the exact volume
  std::vector<std::string> metrics(const sweep::Cell&) const override { return {"volume"}; }
  std::vector<std::string> axes() const override { return {"dim"}; }
};

WorkloadKind ball_kind();

}  // namespace convoy::experiments
