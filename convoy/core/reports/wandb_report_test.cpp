// SPDX-License-Identifier: Apache-2.0
//
// Reads the file of an offline run, by wandb's own classes where a Python has them.
#include "convoy/core/reports/wandb_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::reports {
namespace {

namespace fs = std::filesystem;

ReportRun a_run(int64_t resume_step = -1) {
  return {.id = "abc12345",
          .name = "night",
          .project = "sums",
          .config = {{"seed", 1}, {"train", {{"learning_rate", 0.1}}}},
          .resume_step = resume_step};
}

fs::path file_of(const WandbReport& report) { return report.folder() / "run-abc12345.wandb"; }

// Records of a file.
std::vector<std::string> records_of(const fs::path& file) {
  std::vector<std::string> records;
  cut_wandb_log(file, [&](std::string_view record) {
    records.emplace_back(record);
    return false;
  });
  return records;
}

TEST(WandbLog, ChecksumIsThatOfZlib) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);  // the check value of CRC-32
  EXPECT_EQ(crc32("6789", crc32("12345")), 0xcbf43926u);
}

TEST(WandbLog, RecordsOfAnyLengthComeBack) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> written;
  // The first record leaves less than a piece's head in its block, the second exactly a head.
  for (const size_t bytes : {32768 - 7 - 7 - 3, 32768 - 7 - 7, 1, 0, 100'000, 5})
    written.emplace_back(bytes, static_cast<char>('a' + written.size()));
  for (const std::string& record : written) WandbLog(folder / "r", Log()).append(record);
  EXPECT_EQ(records_of(folder / "r"), written);
}

TEST(WandbLog, ATornEndIsCutOff) {
  const testing::TemporaryFolder folder;
  WandbLog(folder / "r", Log()).append("one");
  WandbLog(folder / "r", Log()).append(std::string(40'000, 'x'));
  fs::resize_file(folder / "r", 39'000);
  EXPECT_EQ(records_of(folder / "r"), std::vector<std::string>{"one"});
  WandbLog(folder / "r", Log()).append("two");
  EXPECT_EQ(records_of(folder / "r"), (std::vector<std::string>{"one", "two"}));
  write_file_atomic(folder / "other", "no log");
  EXPECT_THROW(records_of(folder / "other"), DataError);
}

// Reads a run by wandb's classes; a null value without them.
nlohmann::json read_by_wandb(const fs::path& file) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  const auto [status, text] = testing::run_command(fmt::format(
      "{} {}/tests/golden/reports/read_wandb.py {} 2>/dev/null",
      python == nullptr ? "python3" : python, std::getenv("CONVOY_SOURCE_DIR"), file.string()));
  if (status == 77 || status == 127) return nullptr;
  EXPECT_EQ(status, 0) << text;
  return nlohmann::json::parse(text);
}

TEST(WandbReport, WandbsClassesReadTheRun) {
  const testing::TemporaryFolder folder;
  fs::path file;
  {
    WandbReport first(folder.path(), a_run(), Log());
    file = file_of(first);
    for (int64_t step = 1; step <= 6; ++step)
      first.add_row(step, {{"train/loss", static_cast<double>(step)}});
    first.add_row(6, {{"eval/loss", std::numeric_limits<double>::quiet_NaN()}});
    first.end(1);
  }
  WandbReport second(folder.path(), a_run(4), Log());
  EXPECT_EQ(file_of(second), file);
  second.add_row(5, {{"train/loss", 50}});
  second.end(0);
  const nlohmann::json told = read_by_wandb(file);
  if (told.is_null()) GTEST_SKIP() << "no Python with wandb (CONVOY_PEER_PYTHON)";
  EXPECT_EQ(told["numbers"], "in order");
  EXPECT_EQ(told["run"], nlohmann::json::parse(R"(["abc12345", "sums", "night"])"));
  EXPECT_EQ(told["config"]["train"]["learning_rate"], 0.1);
  EXPECT_EQ(told["loss"], nlohmann::json::parse("[[1,1.0],[2,2.0],[3,3.0],[4,4.0],[5,50.0]]"));
  EXPECT_EQ(told["rows"], nlohmann::json::parse("[0, 1, 2, 3, 4]"));
  EXPECT_EQ(told["summary"]["train/loss"], 50.0);
  EXPECT_EQ(told["axis"], nlohmann::json::parse(R"([["*", "train/global_step"]])"));
  EXPECT_EQ(told["files"], nlohmann::json::parse(R"(["convoy.json"])"));
  EXPECT_EQ(told["exits"], nlohmann::json::parse("[0]"));
}

TEST(WandbReport, AResumedRunGoesOnInItsFile) {
  const testing::TemporaryFolder folder;
  size_t num_records = 0;
  {
    WandbReport first(folder.path(), a_run(), Log());
    first.add_row(1, {{"train/loss", 1}});
    num_records = records_of(file_of(first)).size();
    first.add_row(2, {{"train/loss", 2}});
    first.end(0);
  }
  ReportRun changed = a_run(1);
  changed.config["train"]["learning_rate"] = 0.375;
  const WandbReport second(folder.path(), changed, Log());
  const std::vector<std::string> records = records_of(file_of(second));
  ASSERT_EQ(records.size(), num_records + 1);
  EXPECT_NE(records.back().find("0.375"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WandbReport, ARunThatBeginsAnewReplacesItsFile) {
  const testing::TemporaryFolder folder;
  fs::path file;
  size_t num_records = 0;
  {
    WandbReport first(folder.path(), a_run(), Log());
    file = file_of(first);
    num_records = records_of(file).size();
    first.add_row(1, {{"train/loss", 1}});
  }
  const WandbReport second(folder.path(), a_run(), Log());
  EXPECT_EQ(file_of(second), file);
  EXPECT_EQ(records_of(file).size(), num_records);
}

TEST(WandbReport, AResumedRunKeepsItsProjectAndTakesItsNewName) {
  const testing::TemporaryFolder folder;
  WandbReport(folder.path(), a_run(), Log()).add_row(1, {{"train/loss", 1}});
  ReportRun renamed = a_run(1);
  renamed.name = "day";
  renamed.project = "other";
  for (const size_t num_added : {2, 1}) {  // the run and its settings; then the settings alone
    const std::vector<std::string> before = records_of(find_wandb_log(folder.path(), "abc12345"));
    const WandbReport again(folder.path(), renamed, Log());
    EXPECT_EQ(again.project(), "sums");
    const std::vector<std::string> records = records_of(file_of(again));
    ASSERT_EQ(records.size(), before.size() + num_added);
    EXPECT_EQ(records[before.size()].find("day") != std::string::npos, num_added == 2);
    EXPECT_EQ(records[before.size()].find("sums") != std::string::npos, num_added == 2);
  }
}

}  // namespace
}  // namespace convoy::reports
