// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep check` and `merge`.
#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepCheck : public SweepTest {};

TEST_F(SweepCheck, ThisMachineIsSound) {
  const SweepEnd end = run({"check", "--json", "--max-gpus", "0"});
  ASSERT_EQ(end.status, 0) << end.output << end.errors;
  const json rows = json::parse(end.output);
  EXPECT_GE(rows.size(), 8u);
  for (const json& row : rows) EXPECT_TRUE(row["passed"].get<bool>()) << row.dump();
  EXPECT_NE(end.errors.find(" checks passed in "), std::string::npos) << end.errors;
}

TEST_F(SweepCheck, StoresAreMergedAndTheirResultsCountOnce) {
  const auto sweep = [](const std::string& seeds, const std::string& folder) {
    return std::vector<std::string>{"run",       "--num-seeds", seeds, "--results-dir", folder,
                                    "--workers", "1",           "--",  "test",          "{seed}"};
  };
  ASSERT_EQ(run(sweep("2", "a")).status, 0);
  ASSERT_EQ(run(sweep("3", "b")).status, 0);
  const SweepEnd end = run({"merge", "a/sweep.db", "b/sweep.db", "--into", "c.db"});
  ASSERT_EQ(end.status, 0) << end.errors;
  EXPECT_NE(end.errors.find("a/sweep.db: 1 sweep with 2 cells; 2 results copied, 0 known already"),
            std::string::npos)
      << end.errors;
  const json again =
      json::parse(run({"merge", "b/sweep.db", "--into", "c.db", "--json"}).output)[0];
  EXPECT_EQ(again["results"], 0);
  EXPECT_EQ(again["known"], 3);
  EXPECT_EQ(json::parse(run({"show", "--list", "--store", "c.db", "--json"}).output).size(), 2u);
  // The numbers and times are those of the stores that were read.
  EXPECT_EQ(run({"export", "--store", "c.db", "--name", "run"}).output,
            run({"export", "--results-dir", "b"}).output);
  std::vector<std::string> more = sweep("3", "c");
  more.insert(more.begin() + 1, {"--store", "c.db"});
  EXPECT_NE(run(more).errors.find("nothing was run"), std::string::npos);
  EXPECT_EQ(run({"merge", "a/sweep.db"}).status, 2);
  EXPECT_EQ(run({"merge", "c.db", "--into", "c.db"}).status, 2);
}

}  // namespace
}  // namespace convoy::testing
