// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/run_tasks.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "convoy/apps/front/harness/harness_folder.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/processes/signals.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

// A training whose model has been measured before it.
class MeasuredRun : public ::testing::Test {
 protected:
  MeasuredRun() : folder_(telemetry::RunFolder::create(work_ / "run", "run")) {
    train_.model.name = "some/model";
    train_.eval.tasks.names = {"arc_easy"};
    const nlohmann::ordered_json record = {
        {"settings",
         {{"tasks", train_.eval.tasks.names},
          {"tasks_folder", ""},
          {"limit", 0},
          {"num_fewshot", train_.eval.num_fewshot},
          {"chat", false}}},
        {"before", {{"tasks", nlohmann::ordered_json::object()}}},
        {"before_of",
         {{"words", std::vector<std::string>{"--model", "some/model"}}, {"adapter", ""}}}};
    write_file_atomic(folder_.path() / "tasks.json", record.dump());
  }

  const testing::TemporaryFolder work_;
  const telemetry::RunFolder folder_;
  settings::TrainSettings train_;
  const Context context_{};
};

TEST_F(MeasuredRun, ASignalAfterTheMeasurementEndsIt) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    RunTasks tasks(context_, train_, folder_, false, {SIGTERM});
    tasks.measure_before();
    ::raise(signal);
    EXPECT_THROW(tasks.measure_before(), StopRequest) << signal;
  }
}

TEST_F(MeasuredRun, ALaterSignalWaitsForTheRanks) {
  RunTasks tasks(context_, train_, folder_, false, {SIGTERM});
  tasks.measure_before();
  ::raise(SIGTERM);
  processes::SignalStream ranks({SIGTERM});
  EXPECT_TRUE(ranks.asked_to_stop());
}

TEST(HarnessFolder, ErrorsNameWhatItLeavesBehind) {
  const HarnessFolder kept{.path = "/run/tasks"};
  EXPECT_EQ(kept.shown("/run/tasks/a.json"), "/run/tasks/a.json");
  EXPECT_EQ(kept.log("server.log"), "/run/tasks/server.log");
  const HarnessFolder removed{.path = "/tmp/x", .stays = false};
  EXPECT_EQ(removed.shown("/tmp/x/a.json"), "");
  EXPECT_EQ(removed.log("server.log"), "server.log, which --output FOLDER keeps");
}

}  // namespace
}  // namespace convoy::apps
