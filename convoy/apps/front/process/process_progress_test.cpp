// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_progress.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

TEST(ProcessProgress, ARowOfEventsCountsDoneAndFailed) {
  const testing::TemporaryFolder folder;
  const auto store = jobs::open_store((folder / "ledger.db").string());
  const int64_t group = store->register_group("rows", "process", "1").group.number;
  const std::array<jobs::NewTask, 4> rows = {
      {{R"({"index":0})"}, {R"({"index":1})"}, {R"({"index":2})"}, {R"({"index":3})"}}};
  store->add(group, rows);
  const auto held = store->claim({.group = group, .owner = "me", .max_ranges = 3});
  ASSERT_EQ(held.size(), 3U);
  store->finish(std::array<jobs::Finish, 3>{
      {{.task = held[0].task, .result = {}},
       {.task = held[1].task, .result = {}},
       {.task = held[2].task,
        .result = {.kind = jobs::ResultKind::Failed, .failure = {.message = "no text"}}}}});

  telemetry::EventLog events(folder / "events.jsonl", Log(LogLevel::Quiet));
  ProcessProgress progress(events, *store, {.group = group, .folder = folder.path(), .rows = 4});
  progress.add({});  // too soon for another line
  progress.finish(20.5);
  const auto written = telemetry::read_events(folder / "events.jsonl");
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0]["event"], "step");
  EXPECT_EQ(written[0]["step"], 3);
  EXPECT_EQ(written[0]["rows_failed"], 1);
  EXPECT_EQ(written[0]["tokens_per_second"], 20.5);
}

}  // namespace
}  // namespace convoy::apps
