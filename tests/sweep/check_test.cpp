// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy sweep check` and `convoy sweep merge`.
#include <nlohmann/json.hpp>

#include "convoy/core/jobs/job_store.h"
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
      json::parse(run({"merge", "b/sweep.db", "--into", "c.db", "--json"}).output)["stores"][0];
  EXPECT_EQ(again["results"], 0);
  EXPECT_EQ(again["known"], 3);
  EXPECT_EQ(json::parse(run({"show", "--list", "--store", "c.db", "--json"}).output).size(), 2u);
  // The merged store has the numbers and times of the stores that were read.
  EXPECT_EQ(run({"export", "--store", "c.db", "--name", "run"}).output,
            run({"export", "--results-dir", "b"}).output);
  std::vector<std::string> more = sweep("3", "c");
  more.insert(more.begin() + 1, {"--store", "c.db"});
  EXPECT_NE(run(more).errors.find("nothing was run"), std::string::npos);
  EXPECT_EQ(run({"merge", "a/sweep.db", "b/sweep.db", "--into", "c.db"})
                .errors.find("of 2 sweeps, as one"),
            std::string::npos);
  EXPECT_EQ(run({"merge", "a/sweep.db"}).status, 2);
  EXPECT_EQ(run({"merge", "c.db", "--into", "c.db"}).status, 2);
  EXPECT_EQ(run({"merge", "none.db", "--into", "x.db"}).status, 10);
  EXPECT_FALSE(std::filesystem::exists(path("x.db")));
}

// Each host computed some of the seeds, and nobody types a command with all seeds.
TEST_F(SweepCheck, MergedPartsAreOneSweep) {
  write("data.json", R"([{"alpha": 0.5, "w": [1, 0, 0, 0]}, {"alpha": 0.4, "w": [1, 1, 1, 1]}])");
  const auto sweep = [](std::vector<std::string> seeds, const std::string& folder,
                        const std::string& threshold) {
    std::vector<std::string> words = {"ssm",         "--student-dims",    "20",
                                      "30",          "--gnc-num-samples", "2000",
                                      "--eps-train", threshold,           "--results-dir",
                                      folder,        "--data-file",       "data.json",
                                      "--seeds"};
    words.insert(words.end(), seeds.begin(), seeds.end());
    return words;
  };
  ASSERT_EQ(run(sweep({"0", "2"}, "a", "0.1")).status, 0);
  ASSERT_EQ(run(sweep({"0", "2"}, "a", "0.2")).status, 0);
  ASSERT_EQ(run(sweep({"1"}, "b", "0.1")).status, 0);
  const SweepEnd end = run({"merge", "a/sweep.db", "b/sweep.db", "--into", "c.db", "--json"});
  ASSERT_EQ(end.status, 0) << end.errors;
  const json joined = json::parse(end.output)["joined"];
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0]["cells"], 6);
  EXPECT_EQ(joined[0]["sweeps"], 2);
  EXPECT_NE(end.errors.find(": 6 cells of 2 sweeps, as one; `convoy sweep show c.db` shows them"),
            std::string::npos)
      << end.errors;
  EXPECT_EQ(json::parse(run({"show", "c.db", "--json"}).output).size(), 6u);
  EXPECT_EQ(run({"plot", "c.db", "--output", "a.svg"}).status, 0);
  ASSERT_EQ(run(sweep({"0", "1", "2"}, "all", "0.1")).status, 0);
  EXPECT_EQ(run({"export", "c.db", "--format", "wide"}).output,
            run({"export", "all/sweep.db", "--format", "wide"}).output);
  // Both hosts have a seed with different data, so the two sweeps remain separate.
  write("data.json", R"([{"alpha": 0.3, "w": [1, 0, 0, 0]}])");
  ASSERT_EQ(run(sweep({"0", "1"}, "other", "0.2")).status, 0);
  EXPECT_EQ(run({"merge", "a/sweep.db", "other/sweep.db", "--into", "e.db"}).errors.find("as one"),
            std::string::npos);
  write("data.json", R"([{"alpha": 0.5, "w": [1, 0, 0, 0]}, {"alpha": 0.4, "w": [1, 1, 1, 1]}])");
  // A command with all seeds finds the cells of both hosts.
  std::vector<std::string> all = sweep({"0", "1", "2"}, "d", "0.1");
  all.insert(all.end(), {"--store", "c.db"});
  EXPECT_NE(run(all).errors.find("nothing was run"), std::string::npos);
}

TEST_F(SweepCheck, MergedPartsOfAGridAreOneSweepAndOtherCommandsStayApart) {
  const auto sweep = [](const std::string& values, const std::string& command) {
    return std::vector<std::string>{"run", "--grid", "x=" + values, "--", command, "{x}"};
  };
  for (const auto& words : {sweep("1,2", "test"), sweep("1,2", "echo")})
    ASSERT_EQ(run(words).status, 0);
  std::vector<std::string> other = sweep("3", "test");
  other.insert(other.begin() + 1, {"--results-dir", "b"});
  ASSERT_EQ(run(other).status, 0);
  const SweepEnd end = run({"merge", "results", "b", "--into", "c.db"});
  EXPECT_NE(end.errors.find(": 3 cells of 2 sweeps, as one"), std::string::npos) << end.errors;
  const json list = json::parse(run({"show", "c.db", "--list", "--json"}).output);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list.back()["command"], "test {x}");
  EXPECT_EQ(list.back()["grid"]["x"], json::array({1, 2, 3}));
}

// Earlier versions stored such results: the result of one cell counts no guess, and the result of
// another cell counts some of its guesses.
TEST_F(SweepCheck, CellsOfAStoreThatLackGuessesAreNamedAndComputedAgain) {
  const std::vector<std::string> sweep = {"ssm",   "--seeds",        "0",    "1",
                                          "2",     "--student-dims", "5",    "--gnc-num-samples",
                                          "40000", "--eps-train",    "0.01", "--json"};
  const auto values = [](const SweepEnd& end) {
    std::string all;
    for (const json& row : json::parse(end.output))
      all += row["value"].dump() + row["state"].dump();
    return all;
  };
  const SweepEnd right = run(sweep);
  ASSERT_EQ(right.status, 0) << right.errors;
  EXPECT_EQ(run({"check", "--store", "results"}).status, 0);
  {
    const auto store = jobs::open_store(text("results/sweep.db"));
    const int64_t group = store->groups().at(0).number;
    std::vector<jobs::TaskRecord> tasks;
    store->for_each_task(group, [&](const jobs::TaskRecord& task) { tasks.push_back(task); });
    ASSERT_EQ(store->redo(std::vector<int64_t>{tasks[0].number, tasks[1].number}), 2);
    for (const jobs::Lease& lease :
         store->claim({.group = group, .owner = "w", .max_ranges = 2, .units_per_range = 40'000})) {
      json result = json::parse(tasks[0].result->payload);
      result["tally"]["guesses"] = lease.task == tasks[0].number ? 0 : 136;
      const jobs::Completion completion{
          .lease = lease, .payload = "", .result = jobs::Result{.payload = result.dump()}};
      ASSERT_TRUE(store->complete({&completion, 1}, {}).at(0).counted);
    }
  }
  const SweepEnd shown = run({"show", "--json"});
  EXPECT_EQ(json::parse(shown.output)[0]["state"], "failed");
  EXPECT_EQ(json::parse(shown.output)[0]["failure_kind"], "lost_guesses");
  const SweepEnd found = run({"check", "--store", "results/sweep.db", "--json"});
  EXPECT_EQ(found.status, 15);
  EXPECT_NE(found.errors.find("2 of 3 cells lack guesses"), std::string::npos) << found.errors;
  EXPECT_NE(found.errors.find("--redo"), std::string::npos) << found.errors;
  const json rows = json::parse(found.output);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["guesses"], 136);
  EXPECT_EQ(rows[1]["wanted_guesses"], 40'000);
  std::filesystem::copy(path("results"), path("copy"));
  // The same command computes these cells again, and after --redo it finds them open.
  const SweepEnd again = run(sweep);
  EXPECT_EQ(values(again), values(right)) << again.errors;
  EXPECT_NE(again.errors.find("computing again: 2 cells of whose guesses"), std::string::npos)
      << again.errors;
  EXPECT_EQ(run({"check", "--store", "results"}).status, 0);
  const SweepEnd opened = run({"check", "--store", "copy", "--redo"});
  EXPECT_EQ(opened.status, 0) << opened.errors;
  EXPECT_NE(opened.errors.find("open again: 2 of 3 cells"), std::string::npos) << opened.errors;
  EXPECT_EQ(run({"check", "--store", "copy"}).status, 0);
  std::vector<std::string> of_copy = sweep;
  of_copy.insert(of_copy.end(), {"--results-dir", "copy"});
  EXPECT_EQ(values(run(of_copy)), values(right));
  EXPECT_EQ(run({"check", "--redo"}).status, 2);
}

}  // namespace
}  // namespace convoy::testing
