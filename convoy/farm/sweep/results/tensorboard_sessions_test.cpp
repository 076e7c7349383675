// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/tensorboard_sessions.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

CellResult cell(const std::string& parameters, int64_t seed, double value,
                CellState state = CellState::Value) {
  CellResult result;
  result.cell = {.method = "run", .seed = seed, .parameters = parameters};
  result.state = state;
  result.value = value;
  result.seconds = 2;
  return result;
}

SweepResults results_of(std::vector<CellResult> cells) {
  return {.workload = "run", .version = "1", .cells = std::move(cells)};
}

std::vector<fs::path> folders_with_events(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events."))
      found.push_back(fs::relative(entry.path().parent_path(), folder));
  std::sort(found.begin(), found.end());
  return found;
}

class Sessions : public ::testing::Test {
 protected:
  std::string write(const SweepResults& results) const {
    return write_tensorboard_sessions(results, folder_ / "tb", Log(LogLevel::Quiet));
  }
  // Returns the data that TensorBoard sends to its page, or null without a Python that has
  // TensorBoard.
  json read() const {
    const char* const python = std::getenv("CONVOY_PEER_PYTHON");
    const char* const source = std::getenv("CONVOY_SOURCE_DIR");
    const std::string output = folder_ / "read.json";
    const int status =
        std::system(fmt::format("{} {}/tests/golden/telemetry/read_hparams.py {} >{} 2>/dev/null",
                                python == nullptr ? "python3" : python,
                                source == nullptr ? "." : source, (folder_ / "tb").string(), output)
                        .c_str());
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) return nullptr;
    EXPECT_EQ(status, 0);
    return json::parse(read_file(output));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Sessions, ARunIsASeedAndAGroupIsAPoint) {
  write(results_of({cell(R"({"lr":0.1})", 0, 1), cell(R"({"lr":0.1})", 1, 3),
                    cell(R"({"lr":0.01,"warm":true})", 0, 5),
                    cell(R"({"lr":0.01,"warm":true})", 1, std::nan(""), CellState::Partial)}));
  EXPECT_EQ(folders_with_events(folder_ / "tb"),
            (std::vector<fs::path>{".", "0000-run_lr=0.1/seed-0", "0000-run_lr=0.1/seed-1",
                                   "0001-run_lr=0.01/seed-0"}));
  const json found = read();
  if (found.is_null()) GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  EXPECT_EQ(found["parameters"]["lr"]["type"], "DATA_TYPE_FLOAT64");
  EXPECT_EQ(found["parameters"]["warm"]["type"], "DATA_TYPE_BOOL") << "of one point alone";
  EXPECT_EQ(found["metrics"], json::parse(R"(["seconds", "value"])"));
  std::map<std::string, json> groups;
  for (const json& group : found["groups"]) groups[group["name"]] = group;
  ASSERT_EQ(groups.size(), 2U);
  const json& first = groups["run lr=0.1"];
  EXPECT_EQ(first["parameters"]["lr"], 0.1);
  ASSERT_EQ(first["sessions"].size(), 2U);
  EXPECT_EQ(first["sessions"][0]["metrics"]["value"].get<double>() +
                first["sessions"][1]["metrics"]["value"].get<double>(),
            4);
}

TEST_F(Sessions, FailedCellsAreSessionsWithoutAValue) {
  write(results_of(
      {cell(R"({"lr":0.1})", 0, 1), cell(R"({"lr":0.2})", 0, std::nan(""), CellState::Failed)}));
  const json found = read();
  if (found.is_null()) GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  int failed = 0;
  for (const json& group : found["groups"])
    for (const json& session : group["sessions"])
      if (session["status"] == "STATUS_FAILURE") {
        ++failed;
        EXPECT_FALSE(session["metrics"].contains("value"));
      }
  EXPECT_EQ(failed, 1);
}

TEST_F(Sessions, NumbersBesideWordsAreWords) {
  write(results_of(
      {cell(R"({"values":{"lr":"auto"}})", 0, 1), cell(R"({"values":{"lr":"0.5"}})", 0, 2)}));
  const json found = read();
  if (found.is_null()) GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  EXPECT_EQ(found["parameters"]["lr"]["type"], "DATA_TYPE_STRING");
  EXPECT_EQ(found["parameters"]["lr"]["values"], json::parse(R"(["0.5", "auto"])"));
}

TEST_F(Sessions, ASecondCallReplacesTheFirst) {
  const SweepResults results = results_of({cell(R"({"lr":0.1})", 0, 1)});
  write(results);
  write(results);
  EXPECT_EQ(folders_with_events(folder_ / "tb"), (std::vector<fs::path>{".", "0000-run/seed-0"}));
}

TEST_F(Sessions, AnotherSweepTakesTheFoldersPlaces) {
  write(results_of({cell(R"({"lr":0.1})", 0, 1), cell(R"({"lr":0.1})", 1, 1)}));
  write(results_of({cell(R"({"lr":0.1})", 0, 1)}));
  EXPECT_EQ(folders_with_events(folder_ / "tb"), (std::vector<fs::path>{".", "0000-run/seed-0"}));
}

TEST_F(Sessions, AFolderOfSomebodyElseIsLeftAlone) {
  fs::create_directories(folder_ / "tb");
  const fs::path events = fs::path(folder_ / "tb") / "events.out.tfevents.1.host.1.0";
  write_file_atomic(events, "a training's curves");
  EXPECT_THROW(write(results_of({cell(R"({"lr":0.1})", 0, 1)})), ConfigError);
  EXPECT_EQ(read_file(events), "a training's curves");
}

TEST_F(Sessions, OfManyCellsThereIsOneSessionForEachPoint) {
  std::vector<CellResult> cells;
  for (int64_t seed = 0; seed < 10'000; ++seed)
    cells.push_back(cell(seed % 2 == 0 ? R"({"lr":0.1})" : R"({"lr":0.2})", seed / 2,
                         static_cast<double>(seed / 2)));
  EXPECT_NE(write(results_of(std::move(cells))).find("one of each point"), std::string::npos);
  EXPECT_EQ(folders_with_events(folder_ / "tb").size(), 3U);
  const json found = read();
  if (found.is_null()) GTEST_SKIP() << "no Python with TensorBoard (CONVOY_PEER_PYTHON)";
  const json& metrics = found["groups"][0]["sessions"][0]["metrics"];
  EXPECT_EQ(metrics["seeds"], 5000);
  EXPECT_EQ(metrics["value"], 2499.5);
  EXPECT_EQ(metrics["value_low"], 1249.75);
}

TEST_F(Sessions, OfTooManyPointsNothingIsWritten) {
  std::vector<CellResult> cells;
  for (int64_t number = 0; number <= kMostTensorboardPoints; ++number)
    cells.push_back(cell(fmt::format(R"({{"lr":{}}})", number), 0, 1));
  EXPECT_NE(write(results_of(std::move(cells))).find("is not written"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "tb"));
}

}  // namespace
}  // namespace convoy::sweep
