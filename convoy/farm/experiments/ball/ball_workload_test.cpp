// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ball/ball_workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/registry.h"

namespace convoy::experiments {
namespace {

TEST(BallWorkload, VolumesAreThoseOfTheClosedForm) {
  const BallWorkload workload;
  for (const sweep::PlannedCell& planned : plan_ball({}).cells) {
    const sweep::Tally tally = workload.guesses(planned.cell)->run(0, 100'000);
    const double volume = workload.reference(planned.cell).curve;
    EXPECT_LT(std::abs(tally.mean() - volume), 5 * tally.standard_error()) << planned.parameters();
  }
}

TEST(BallWorkload, RangesAddUpToTheSameBits) {
  const sweep::Cell cell{.method = "points", .seed = 3, .parameters = R"({"dim":5})"};
  const auto experiment = BallWorkload().guesses(cell);
  sweep::Tally parts = experiment->run(700, 300);
  parts.merge(experiment->run(0, 700));
  EXPECT_EQ(parts, experiment->run(0, 1000));
}

TEST(BallWorkload, RefusesADimensionThatIsNone) {
  EXPECT_THROW(
      BallWorkload().guesses({.method = "points", .seed = 0, .parameters = R"({"dim":0})"}),
      ConfigError);
}

TEST(Registry, MakesEveryKindByItsNameAndPlansItsFlags) {
  for (const WorkloadKind& kind : workload_kinds()) {
    const std::string name(kind.name);
    EXPECT_EQ(find_workload(name), &kind);
    EXPECT_EQ(make_workload(name, "exact")->name(), name);
    const sweep::SweepPlan plan = kind.flags()->plan();
    EXPECT_EQ(plan.workload, name);
    EXPECT_EQ(make_workload(name, plan.mode)->version(), plan.version);
    EXPECT_FALSE(kind.fields().fields.empty());
  }
}

TEST(Registry, KnowsProgramsAndFunctionsAndRefusesTheRest) {
  EXPECT_EQ(make_workload("run", "")->name(), "run");
  EXPECT_EQ(workload_of_version("function:f", "1")->name(), "run");
  EXPECT_THROW(make_workload("of-tomorrow", ""), ConfigError);
  EXPECT_EQ(find_workload("run"), nullptr);
}

}  // namespace
}  // namespace convoy::experiments
