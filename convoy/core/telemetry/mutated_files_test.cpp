// SPDX-License-Identifier: Apache-2.0
//
// Damaged files of runs are read as far as possible, or refused as one of Convoy's errors. Any
// other exception would hide every other run from `convoy runs list`.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/logs/event_tail.h"
#include "convoy/core/telemetry/logs/trainer_state.h"
#include "convoy/core/telemetry/ranks/flight_record.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "files/mutated_texts.h"

namespace convoy::telemetry {
namespace {

using testing::count;
using testing::MutatedTexts;
using testing::Outcome;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(MutatedFiles, RowsOfARun) {
  const TestFolder folder;
  const std::filesystem::path path = folder.path() / "events.jsonl";
  const std::vector<std::string> rows = {
      R"({"event":"start","time":1.5,"total_steps":10,"world_size":2,"resume_step":-1})",
      R"({"event":"step","time":2.5,"step":1,"loss":2.0,"grad_norm":0.5,"learning_rate":1e-4,)"
      R"("tokens_per_second":1000.0,"peak_memory_bytes":1048576})",
      R"({"event":"eval","time":3.5,"step":1,"split":"eval","loss":1.5,"perplexity":4.5})",
      R"({"event":"checkpoint","time":4.5,"step":1,"path":"checkpoints/1","best":true})",
      R"({"event":"failure","time":5.5,"message":"out of memory"})",
      R"({"event":"end","time":6.5,"status":"stopped"})"};
  MutatedTexts mutated(rows);
  Outcome histories, tails;
  for (int round = 0; round < 400; ++round) {
    const std::string spoilt = mutated.next() + "\n";
    write(path, rows[0] + "\n" + spoilt + rows[5] + "\n");
    count<Error>(histories, [&] { read_run(folder.path()); });
    count<Error>(tails, [&] {
      for (const auto& row : EventTail(path).new_rows()) event_text(row);
    });
  }
  EXPECT_GT(histories.read, 25);
  EXPECT_GT(histories.refused, 25);
  EXPECT_EQ(tails.refused, 0);
}

TEST(MutatedFiles, ARowOfTheWrongTypesDoesNotHideARun) {
  const TestFolder folder;
  write(folder.path() / "events.jsonl",
        R"({"event":"start","time":"noon","total_steps":"many","resume_step":[]})"
        "\n"
        R"({"event":"eval","step":1,"split":7,"loss":"low"})"
        "\n"
        R"({"event":"failure","message":{"a":1}})"
        "\n"
        R"({"event":"end","status":3,"time":1e300})"
        "\n");
  const RunHistory run = read_run(folder.path());
  EXPECT_EQ(run.state, RunState::Finished);
  EXPECT_EQ(run.total_steps, 0);
  EXPECT_EQ(run.failure, "");
  for (const auto& row : EventTail(folder.path() / "events.jsonl").new_rows()) event_text(row);
}

TEST(MutatedFiles, RecordsOfARun) {
  const TestFolder folder;
  const RunFolder run = RunFolder::create(folder.path() / "run", "run");
  const RunIdentity identity{.name = "run", .config_json = "{\"a\": {\"b\": 1}}", .hosts = {"h"}};
  run.write_identity(identity);
  run.write_metrics({{"loss", 1.5}, {"steps", 10}});
  MutatedTexts identities({read_file(run.identity_path())});
  MutatedTexts metrics({read_file(run.metrics_path())});
  MutatedTexts holders({read_file(run.path() / ".lock")});
  Outcome outcome;
  for (int round = 0; round < 40; ++round) {
    write(run.identity_path(), identities.next());
    write(run.metrics_path(), metrics.next());
    // The file is overwritten in place: the lock is held on the file and not on its name.
    write(run.path() / ".lock", holders.next());
    count<Error>(outcome, [&] {
      run.write_config("a: 1\n", {{"a", 1}}, {{"a", "default"}});
      run.write_metrics({{"loss", 2.5}});
    });
    write(run.identity_path(), identities.next());
    count<Error>(outcome, [&] { run.write_identity(identity); });
    EXPECT_THROW(RunFolder::create(run.path(), "run"), ConfigError);
  }
  EXPECT_EQ(outcome.refused, 0);
}

TEST(MutatedFiles, StatesOfTrainersAndFlightsOfRanks) {
  TrainerState state;
  state.global_step = 12;
  state.best_metric = 0.5;
  state.log_history =
      nlohmann::json::parse(R"([{"step": 1, "loss": 2.5}, {"step": 2, "loss": 1.5}])");
  RankFlight flight;
  flight.rank = 3;
  flight.phase = "training";
  flight.records = {
      CollectiveRecord{.group = "world", .operation = "all_reduce", .dtype = "float32"}};
  MutatedTexts texts({trainer_state_json(state), flight_json(flight)});
  Outcome outcome;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = texts.next();
    count<Error>(outcome, [&] { parse_trainer_state(text); });
    count<Error>(outcome, [&] { flight_json(parse_flight_json(text)); });
  }
  EXPECT_GT(outcome.read, 100);
  EXPECT_GT(outcome.refused, 100);
}

}  // namespace
}  // namespace convoy::telemetry
