// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/logs/event_tail.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

void write_run(const fs::path& folder, bool ended) {
  EventLog events(folder / "events.jsonl", Log(LogLevel::Quiet));
  events.append(EventKind::Start, {{"total_steps", 10}, {"resume_step", -1}});
  events.append(EventKind::Step, {{"step", 1}, {"loss", 2.0}});
  events.append(EventKind::Eval, {{"step", 1}, {"split", "eval"}, {"loss", 1.5}});
  events.append(EventKind::Eval, {{"step", 1}, {"split", "test"}, {"loss", 9}});
  events.append(EventKind::Step, {{"step", 2}, {"loss", nullptr}});
  if (ended) events.append(EventKind::End, {{"status", "early_stopped"}});
}

TEST(RunHistory, StateComesFromRowsAndLock) {
  const TestFolder folder;
  write_run(folder.path() / "done", true);
  EXPECT_EQ(read_run(folder.path() / "done").state, RunState::Finished);
  const fs::path live = folder.path() / "live";
  {
    const RunFolder held = RunFolder::create(live, "live");
    EXPECT_EQ(run_state_word(RunState::Empty), "empty");
    write_run(live, false);
    EXPECT_EQ(read_run(live).state, RunState::Running);
  }
  const RunHistory dead = read_run(live);
  EXPECT_EQ(dead.state, RunState::Failed);
  EXPECT_FALSE(dead.failure.empty());
  EXPECT_EQ(dead.steps, 2);
  EXPECT_EQ(dead.total_steps, 10);
  EXPECT_EQ(dead.train_loss.size(), 1u) << "a loss that was NaN is null in the file";
  EXPECT_EQ(dead.eval_loss.size(), 1u);
  EXPECT_THROW(read_run(folder.path()), DataError);
}

TEST(RunHistory, StepsBeyondTheLoweredPlanStandAlone) {
  RunHistory run;
  run.steps = 12;
  EXPECT_EQ(steps_text(run), "12");
  run.total_steps = 40;
  EXPECT_EQ(steps_text(run), "12/40");
  run.total_steps = 4;
  EXPECT_EQ(steps_text(run), "12");
}

TEST(RunHistory, NamesResolve) {
  const TestFolder folder;
  for (const char* name : {"sums-1", "sums-2", "deep/er/gsm"})
    write_run(folder.path() / name, true);
  fs::last_write_time(folder.path() / "sums-1" / "events.jsonl",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(find_runs(folder.path()).size(), 3u);
  const auto name_of = [&](const std::string& word) {
    return resolve_run(word, folder.path()).filename().string();
  };
  EXPECT_EQ(name_of("last"), "sums-1");
  EXPECT_EQ(name_of("gs"), "gsm");
  EXPECT_EQ(name_of("sums-2"), "sums-2");
  EXPECT_EQ(name_of((folder.path() / "sums-2").string()), "sums-2");
  try {
    name_of("sums");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("sums-1 sums-2"), std::string::npos) << error.sentence();
  }
  try {
    name_of("smus-2");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("did you mean `sums-2`"), std::string::npos)
        << error.sentence();
  }
  EXPECT_THROW(resolve_run("last", folder.path() / "none"), ConfigError);
  // Each of two profiles has a folder `ranks`, so the name alone would not tell them apart.
  write_run(folder.path() / "a-1" / "ranks", true);
  write_run(folder.path() / "a-2" / "ranks", true);
  EXPECT_EQ(run_name(folder.path() / "a-1" / "ranks", folder.path()), "a-1/ranks");
  EXPECT_EQ(resolve_run("a-2/ranks", folder.path()), folder.path() / "a-2" / "ranks");
  try {
    name_of("ranks");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("a-1/ranks a-2/ranks"), std::string::npos) << error.sentence();
  }
}

TEST(RunHistory, LastIsTheNewestThatTookAStepOrGoesOn) {
  const TestFolder folder;
  int hours = 0;
  const auto touch = [&](const std::string& name) {
    fs::last_write_time(folder.path() / name / "events.jsonl",
                        fs::file_time_type::clock::now() + std::chrono::hours(++hours));
  };
  const auto write_start = [&](const std::string& name) {
    EventLog events(folder.path() / name / "events.jsonl", Log(LogLevel::Quiet));
    events.append(EventKind::Start, {{"total_steps", 10}, {"resume_step", -1}});
    events.append(EventKind::Failure, {{"message", "no such model"}});
    touch(name);
  };
  const auto last = [&] { return resolve_run("last", folder.path()).filename().string(); };
  write_start("failed-at-once");
  try {
    last();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("has taken a step; the newest of 1 is failed-at-once"),
              std::string::npos)
        << error.sentence();
  }
  write_run(folder.path() / "trained", true);
  touch("trained");
  write_start("failed-again");
  EXPECT_EQ(last(), "trained");
  EXPECT_EQ(resolve_run("failed-again", folder.path()).filename(), "failed-again");
  const RunFolder held = RunFolder::create(folder.path() / "starting", "starting");
  EventLog events(held.events_path(), Log(LogLevel::Quiet));
  events.append(EventKind::Start, {{"total_steps", 10}, {"resume_step", -1}});
  touch("starting");
  EXPECT_EQ(last(), "starting");
}

TEST(EventTail, FollowsRowsAndRestarts) {
  const TestFolder folder;
  const fs::path path = folder.path() / "events.jsonl";
  EventTail tail(path);
  EXPECT_TRUE(tail.new_rows().empty());
  write_file_atomic(path, "{\"event\":\"step\",\"time\":1,\"step\":1}\n{\"event\":\"st");
  EXPECT_EQ(tail.new_rows().size(), 1u);
  EXPECT_TRUE(tail.new_rows().empty());
  write_file_atomic(path,
                    "{\"event\":\"step\",\"time\":1,\"step\":1}\n{\"event\":\"step\",\"time\":2,"
                    "\"step\":2,\"loss\":null}\n");
  const auto rows = tail.new_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["step"], 2);
  EXPECT_NE(event_text(rows[0]).find("step 2  loss nan"), std::string::npos);
}

TEST(EventTail, AnEvaluationShowsTheFiguresThatItHas) {
  const auto shown = [](const std::string& figure, double value) {
    nlohmann::ordered_json row = {{"event", "eval"}, {"split", "eval"}, {"loss", 0.5}};
    row[figure] = value;
    return event_text(row);
  };
  EXPECT_TRUE(shown("perplexity", 1.5).ends_with("eval loss 0.5000  perplexity 1.5"));
  EXPECT_TRUE(shown("rewards/margins", 0.25).ends_with("eval loss 0.5000  rewards/margins 0.25"));
}

}  // namespace
}  // namespace convoy::telemetry
