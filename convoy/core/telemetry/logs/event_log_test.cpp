// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/logs/event_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> steps_of(const fs::path& path) {
  std::vector<int64_t> steps;
  for (const auto& row : read_events(path))
    if (row["event"] == "step") steps.push_back(row["step"]);
  return steps;
}

int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(EventLog, WritesOneWholeLinePerEventAtOnce) {
  const TestFolder folder;
  const fs::path path = folder.path() / "run" / "events.jsonl";
  EventLog events(path, Log());
  events.append(EventKind::Start, {{"total_steps", 2}});
  events.append(EventKind::Step, {{"step", 1}, {"loss", 2.5}});
  events.append(EventKind::Warning, {{"message", "line one\nline two \xff"}});
  const std::string text = read_file(path);
  EXPECT_EQ(count_lines(text), 3);
  const auto rows = read_events(path);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["event"], "step");
  EXPECT_EQ(rows[1]["loss"], 2.5);
  EXPECT_GT(rows[1]["time"].get<double>(), 1.6e9);
}

TEST(EventLog, RepairsEveryTornTail) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  {
    EventLog events(path, Log());
    for (int step = 1; step <= 4; ++step) events.append(EventKind::Step, {{"step", step}});
  }
  const std::string whole = read_file(path);
  for (size_t length = 0; length <= whole.size(); ++length) {
    for (const std::string& tail : {std::string(), std::string(7, '\0'), std::string("\0\n", 2)}) {
      const std::string torn = whole.substr(0, length) + tail;
      write_file_atomic(path, torn);
      const auto kept = static_cast<int64_t>(read_events(path).size());
      EXPECT_EQ(kept, count_lines(whole.substr(0, length)));
      EventLog events(path, Log());
      events.append(EventKind::Step, {{"step", 9}});
      const auto rows = read_events(path);
      ASSERT_EQ(static_cast<int64_t>(rows.size()), kept + 1) << length;
      EXPECT_EQ(rows.back()["step"], 9);
    }
  }
}

TEST(EventLog, RandomKillsAndRestartsLeaveOneRowPerStep) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  std::mt19937 random(7);
  int64_t saved = -1;
  int64_t done = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    EventLog events(path, Log(), saved);
    events.append(EventKind::Start, {{"resume_step", saved}});
    done = std::max<int64_t>(saved, 0);
    const auto steps = static_cast<int64_t>(random() % 20);
    for (int64_t step = done + 1; step <= done + steps; ++step) {
      events.append(EventKind::Step, {{"step", step}, {"attempt", attempt}});
      events.append(EventKind::Eval, {{"step", step}, {"split", "eval"}, {"attempt", attempt}});
    }
    done += steps;
    if (random() % 2 == 0) saved = done - static_cast<int64_t>(random() % (steps + 1));
    const std::string text = read_file(path);
    if (random() % 2 == 0) write_file_atomic(path, text + "{\"event\":\"step\",\"st");
  }
  std::vector<int64_t> expected;
  for (int64_t step = 1; step <= done; ++step) expected.push_back(step);
  EXPECT_EQ(steps_of(path), expected);
  // The file itself holds no superseded rows either, without the reader's help.
  int64_t rows = 0;
  const std::string text = read_file(path);
  for (size_t at = text.find("\"event\":\"step\",\"time\""); at != std::string::npos;
       at = text.find("\"event\":\"step\",\"time\"", at + 1))
    ++rows;
  EXPECT_EQ(rows, done);
}

TEST(EventLog, ReadersDropRowsThatALaterStartSuperseded) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  write_file_atomic(
      path,
      "{\"event\":\"start\",\"resume_step\":-1}\n{\"event\":\"step\",\"step\":1,\"loss\":1}\n"
      "{\"event\":\"step\",\"step\":2,\"loss\":2}\n{\"event\":\"step\",\"step\":3,\"loss\":3}\n"
      "{\"event\":\"start\",\"resume_step\":1}\n{\"event\":\"step\",\"step\":2,\"loss\":20}\n");
  EXPECT_EQ(steps_of(path), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read_events(path).back()["loss"], 20);
}

TEST(EventLog, AppendingAFailureLeavesTheRowsAlone) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  EventLog(path, Log(), -1).append(EventKind::Step, {{"step", 5}});
  EventLog(path, Log()).append(EventKind::Failure, {{"message", "rank 1 died"}});
  EXPECT_EQ(read_events(path).size(), 2u);
  EventLog(path, Log(), -1).append(EventKind::Start, {{"resume_step", -1}});
  EXPECT_TRUE(steps_of(path).empty());
}

TEST(EventLog, RefusesABadLineInTheMiddleWithItsNumber) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  write_file_atomic(path, "{\"event\":\"start\"}\nnot json\n{\"event\":\"end\"}\n");
  try {
    read_events(path);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 2);
  }
}

TEST(EventLog, AFullDiskCostsRowsAndOneWarningOnly) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  fs::create_symlink("/dev/full", path);
  ::testing::internal::CaptureStderr();
  EventLog events(path, Log(LogLevel::Quiet));
  for (int step = 1; step <= 5; ++step) events.append(EventKind::Step, {{"step", step}});
  const std::string messages = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_lines(messages), 1) << messages;
  EXPECT_NE(messages.find("No space left"), std::string::npos) << messages;
}

}  // namespace
}  // namespace convoy::telemetry
