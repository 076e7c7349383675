// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy sweep ball`, a workload that only its own folder and the registry name. It runs on
// workers, resumes, and is shown and exported as any other workload.
#include <cmath>
#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

class SweepBall : public SweepTest {};

TEST_F(SweepBall, RunsOnWorkersAndIsReadLikeAnyOther) {
  const std::vector<std::string> command = {"ball",         "--dims", "2",         "3",
                                            "--num-seeds",  "2",      "--workers", "2",
                                            "--num-points", "2e5",    "--json"};
  const SweepEnd end = run(command);
  ASSERT_EQ(end.status, 0) << end.errors;
  const auto cells = nlohmann::json::parse(end.output);
  ASSERT_EQ(cells.size(), 4u);
  for (const auto& cell : cells) {
    const double exact = cell["dim"] == 2 ? M_PI : 4 * M_PI / 3;
    EXPECT_NEAR(cell["value"].get<double>(), exact, 0.05) << cell;
  }
  const SweepEnd again = run(command);
  EXPECT_EQ(again.output, end.output);
  EXPECT_NE(again.errors.find("nothing was run"), std::string::npos) << again.errors;
  const SweepEnd wide = run({"export", "--format", "wide"});
  EXPECT_EQ(wide.status, 2);
  EXPECT_NE(wide.errors.find("workload `ball` has no wide format"), std::string::npos)
      << wide.errors;
  EXPECT_NE(wide.errors.find("ssm, mf"), std::string::npos) << wide.errors;
}

TEST_F(SweepBall, FlagsAreItsOwn) {
  const SweepEnd end = run({"ball", "--gd"});
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find("--gd"), std::string::npos) << end.errors;
}

}  // namespace
}  // namespace convoy::testing
