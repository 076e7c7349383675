// SPDX-License-Identifier: Apache-2.0
//
// Tests what the page shows of sweeps in real stores.
#include "convoy/apps/page/sweep_index.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/files.h"
#include "convoy/farm/sweep/command/command_grid.h"
#include "convoy/farm/sweep/command/command_workload.h"
#include "convoy/farm/sweep/runner/cell_worker.h"
#include "files/temporary_folder.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns a plan with four cells of a program that fails for seed 1.
sweep::SweepPlan plan_of_two_rates() {
  sweep::CommandFlags flags;
  flags.grid.names = {"lr=0.5,0.25"};
  flags.num_seeds = 2;
  flags.result.names = {"loss"};
  return sweep::plan_command(
      flags, {"sh", "-c",
              "echo '{{\"loss\": {lr}}}'; test {seed} = 0 || {{ echo no luck >&2; exit 3; }}"});
}

class Sweeps : public ::testing::Test {
 protected:
  std::unique_ptr<jobs::JobStore> open(const std::string& folder) {
    fs::create_directories(folder_ / folder);
    return jobs::open_store((folder_ / folder / "sweep.db").string());
  }

  // Runs a worker until the sweep has no open cell.
  void work(jobs::JobStore& store, const sweep::StoredSweep& stored) {
    sweep::WorkerOptions options;
    options.name = "me";
    for (const jobs::Group& group : stored.groups) options.groups.push_back({group.number, 8});
    options.tell = [](const sweep::WorkerMessage&) {};
    options.stop_wanted = [] { return false; };
    sweep::run_worker(options, sweep::CommandWorkload(), store);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Sweeps, AreListedWithProgressAndState) {
  const sweep::SweepPlan plan = plan_of_two_rates();
  const auto store = open("deep/results");
  const sweep::StoredSweep stored = sweep::store_plan(*store, plan);
  SweepIndex index(folder_.path());
  std::vector<json> lines = index.list();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["name"], "deep/results/" + plan.name());
  EXPECT_EQ(lines[0]["kind"], "sweep");
  EXPECT_EQ(lines[0]["state"], "stopped");
  EXPECT_EQ(lines[0]["steps"], 0);
  EXPECT_EQ(lines[0]["total_steps"], 4);

  const auto lease = store->claim({.group = stored.groups[0].number, .owner = "me"});
  ASSERT_EQ(lease.size(), 1U);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(index.list()[0]["state"], "running");
  store->release(lease[0].owner);

  work(*store, stored);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  lines = index.list();
  EXPECT_EQ(lines[0]["state"], "failed");
  EXPECT_EQ(lines[0]["steps"], 4);
  EXPECT_EQ(lines[0]["failed"], 2);
}

TEST_F(Sweeps, DetailsAreTablesWithReasonsOfFailures) {
  const sweep::SweepPlan plan = plan_of_two_rates();
  const auto store = open("");
  work(*store, sweep::store_plan(*store, plan));
  SweepIndex index(folder_.path());
  const json details = index.details(plan.name());
  EXPECT_EQ(details["axes"], json::parse(R"({"lr": [0.25, 0.5]})"));
  EXPECT_EQ(details["settings"]["result"], "loss");
  EXPECT_EQ(details["num_cells"], 4);
  EXPECT_EQ(details["over_seeds"]["columns"][1], "lr");
  const json& first = details["over_seeds"]["rows"][0];
  EXPECT_EQ(first[1], 0.5);
  EXPECT_EQ(first[2], 0.5);
  EXPECT_EQ(first.back(), "1 of 2, 1 failed");
  ASSERT_EQ(details["failures"]["rows"].size(), 2U);
  const json& failure = details["failures"]["rows"][0];
  EXPECT_EQ(failure[1], 1) << "the seed";
  EXPECT_EQ(failure[3], "exit");
  EXPECT_NE(failure[6].get<std::string>().find("no luck"), std::string::npos);
  const auto figure = index.figure_svg(plan.name(), false);
  ASSERT_TRUE(figure);
  EXPECT_NE(figure->find("4 cells: 2 values, 2 failed"), std::string::npos);
  EXPECT_TRUE(index.details("none").is_null());
  EXPECT_FALSE(index.figure_svg("none", true));
}

TEST_F(Sweeps, FilesThatTheyWroteAndNoOthers) {
  const sweep::SweepPlan plan = plan_of_two_rates();
  const auto store = open("results");
  sweep::store_plan(*store, plan);
  sweep::SweepPlan other = plan;
  other.cells.pop_back();
  sweep::store_plan(*store, other);
  const fs::path results = folder_ / "results";
  write_file_atomic(results / "table.csv", "a,b\n1,2\n");
  write_file_atomic(results / ("figures/sweep_" + plan.name() + ".svg"), "<svg/>");
  write_file_atomic(results / ("figures/sweep_" + other.name() + ".svg"), "<svg/>");
  write_file_atomic(results / "notes.txt", "mine");
  write_file_atomic(folder_ / "outside.csv", "secret");
  fs::create_symlink(folder_ / "outside.csv", results / "link.csv");
  fs::create_directory_symlink(folder_.path(), results / "folder");
  SweepIndex index(folder_.path());
  const std::string name = "results/" + plan.name();
  const json details = index.details(name);
  ASSERT_EQ(details["figures"].size(), 1U) << details["figures"];
  EXPECT_EQ(details["figures"][0]["name"], "figures/sweep_" + plan.name() + ".svg");
  ASSERT_EQ(details["tables"].size(), 1U) << details["tables"];
  EXPECT_EQ(index.file(name, "table.csv"), "a,b\n1,2\n");
  for (const char* path : {"notes.txt", "link.csv", "../outside.csv", "folder/outside.csv",
                           "/etc/passwd", "sweep.db", "", "."})
    EXPECT_FALSE(index.file(name, path)) << path;
}

TEST_F(Sweeps, ADamagedStoreIsALineWithItsReason) {
  write_file_atomic(folder_ / "sweep.db", std::string(4096, 'x'));
  SweepIndex index(folder_.path());
  const std::vector<json> lines = index.list();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["state"], "failed");
  EXPECT_FALSE(lines[0]["failure"].get<std::string>().empty());
  const json details = index.details(lines[0]["name"]);
  EXPECT_FALSE(details.contains("cells"));
}

}  // namespace
}  // namespace convoy::page
