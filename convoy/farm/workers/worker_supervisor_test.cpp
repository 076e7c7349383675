// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/worker_supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/farm/workers/toy_work_test.h"
#include "convoy/farm/workers/worker.h"
#include "files/temporary_folder.h"

namespace convoy::workers {
namespace {

using namespace std::chrono_literals;

// Runs as the program of a worker, by TOY_MODE: "work" computes all tasks; "broken" and "misused"
// end before a claim; "poison" is killed by task 7; "killed" is killed once in task 7; "slow"
// computes until it is asked to stop.
void work_as_toy() {
  const std::string mode = std::getenv("TOY_MODE");
  if (mode == "broken") {
    std::fputs("this toy is broken\n", stderr);
    std::_Exit(3);
  }
  if (mode == "misused") {
    const ConfigError error("toys have no wheels");
    std::fprintf(stderr, "%s\n", error.json_line().c_str());
    std::_Exit(static_cast<int>(error.code()));
  }
  WorkerProcess process;
  const std::string path = std::getenv("TOY_STORE");
  const auto store = process.open_store(path);
  const int64_t group = store->groups().at(0).number;
  ToySource work(*store, group, process.name());
  work.begin = [&](const jobs::Lease& lease) {
    send_to_supervisor("begin\n");
    const std::string mark = path + ".killed";
    const bool is_seven = toy_number(lease.parameters) == 7;
    if (is_seven && (mode == "poison" || (mode == "killed" && !std::filesystem::exists(mark)))) {
      std::ofstream(mark) << "killed";
      ::raise(SIGKILL);
    }
    while (mode == "slow" && !process.stop_wanted()()) std::this_thread::sleep_for(1ms);
  };
  run_loop({.name = process.name(), .groups = {group}, .stop_wanted = process.stop_wanted()}, work,
           *store);
}

TEST(ToyWorker, DISABLED_Works) {
  work_as_toy();
  std::_Exit(0);
}

class ToyWork : public SupervisedWork {
 public:
  telemetry::Progress& bar() override { return bar_; }
  bool handle_line(size_t /*worker*/, const std::string& line) override {
    if (line != "begin") return false;
    ++num_begun;
    if (on_begin) on_begin();
    return true;
  }
  DeathConsequence consequence_of(const WorkerDeath& death,
                                  const std::vector<jobs::Lease>& leases) override {
    deaths.push_back(death);
    DeathConsequence consequence{.idle = !death.worked};
    if (blames)
      for (const jobs::Lease& lease : leases)
        consequence.failures.push_back(
            {.lease = lease, .failure = death.failure("crash", death.end_text())});
    return consequence;
  }
  int64_t num_begun = 0;
  std::function<void()> on_begin;
  bool blames = false;
  std::vector<WorkerDeath> deaths;

 private:
  telemetry::Progress bar_{telemetry::ProgressOptions{.style = telemetry::ProgressStyle::None}};
};

// A worker that starts while the last task ends may receive the stop signal before it handles
// signals.
bool ended_as_told(const WorkerDeath& death) {
  return death.ended_well() || death.signal == SIGTERM;
}

class WorkerSupervision : public ::testing::Test {
 protected:
  // One worker for each mode.
  SupervisorOptions options(const std::vector<std::string>& modes) const {
    SupervisorOptions made;
    made.pool.command = {"/proc/self/exe", "--gtest_filter=ToyWorker.DISABLED_Works",
                         "--gtest_also_run_disabled_tests"};
    made.pool.workers = static_cast<int64_t>(modes.size());
    for (const std::string& mode : modes)
      made.pool.environment.push_back({{"TOY_MODE", mode}, {"TOY_STORE", path_}});
    made.groups = {group_};
    return made;
  }

  int run(const SupervisorOptions& options) {
    WorkerSupervisor supervisor(path_, Log(LogLevel::Quiet));
    return supervisor.run(options, work_);
  }

  template <class Expected>
  std::optional<Expected> error_of(const SupervisorOptions& options) {
    try {
      run(options);
    } catch (const Expected& error) {
      return error;
    }
    return std::nullopt;
  }

  int64_t squares() { return count_squares(*store_, group_); }

  convoy::testing::TemporaryFolder folder_;
  std::string path_ = (folder_ / "store.db").string();
  std::unique_ptr<jobs::JobStore> store_ = jobs::open_store(path_);
  int64_t group_ = add_toy_tasks(*store_, 20);
  ToyWork work_;
};

TEST_F(WorkerSupervision, EndsWhenNoTaskIsOpen) {
  EXPECT_EQ(run(options({"work", "work"})), 0);
  EXPECT_EQ(squares(), 20);
  EXPECT_EQ(work_.num_begun, 20);
  EXPECT_TRUE(store_->leases(group_).empty());
  for (const WorkerDeath& death : work_.deaths) EXPECT_TRUE(ended_as_told(death));
}

TEST_F(WorkerSupervision, LeavesFinishedTasksAlone) {
  run(options({"work"}));
  EXPECT_EQ(run(options({"broken"})), 0);
  EXPECT_EQ(work_.num_begun, 20);
}

TEST_F(WorkerSupervision, GivesUpAfterIdleDeathsInARow) {
  const auto error = error_of<StateError>(options({"broken", "broken"}));
  ASSERT_TRUE(error);
  EXPECT_NE(error->sentence().find(
                "5 workers in a row ended before they began any work: the worker ended with 3"),
            std::string::npos);
  EXPECT_NE(error->sentence().find("this toy is broken"), std::string::npos);
  EXPECT_GE(work_.deaths.size(), 5u);
  EXPECT_FALSE(work_.deaths[0].worked);
}

TEST_F(WorkerSupervision, OneThatCanNotBeginIsLeftOutAndTheOthersGoOn) {
  SupervisorOptions some = options({"broken", "work"});
  some.idle_deaths = {.deaths = 1, .kills = 1, .of_each_worker = true};
  EXPECT_EQ(run(some), 0);
  EXPECT_EQ(squares(), 20);
  SupervisorOptions none = options({"broken", "broken"});
  none.idle_deaths = some.idle_deaths;
  store_->redo(std::vector<int64_t>{1});
  EXPECT_TRUE(error_of<StateError>(none));
}

TEST_F(WorkerSupervision, AMisusedWorkerIsNotTriedAgainAndItsErrorIsThrown) {
  const auto error = error_of<Error>(options({"misused"}));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::Usage);
  EXPECT_NE(error->sentence().find("toys have no wheels"), std::string::npos);
  EXPECT_EQ(work_.deaths.size(), 1u);
}

TEST_F(WorkerSupervision, ALeaseOfADeadWorkerGoesToAnother) {
  EXPECT_EQ(run(options({"killed", "killed"})), 0);
  EXPECT_EQ(squares(), 20);
  const auto killed = [](const WorkerDeath& death) {
    return death.worked && death.signal == SIGKILL;
  };
  EXPECT_EQ(std::count_if(work_.deaths.begin(), work_.deaths.end(), killed), 1);
  for (const WorkerDeath& death : work_.deaths)
    EXPECT_TRUE(ended_as_told(death) || killed(death)) << death.signal;
}

TEST_F(WorkerSupervision, ATaskThatKillsItsWorkersFailsAfterItsAttempts) {
  work_.blames = true;
  EXPECT_EQ(run(options({"poison"})), 0);
  EXPECT_EQ(squares(), 19);
  store_->for_each_task(group_, [&](const jobs::TaskRecord& task) {
    if (toy_number(task.parameters) != 7) return;
    ASSERT_EQ(task.state, jobs::TaskState::Failed);
    EXPECT_EQ(task.result->failure.message, "SIGKILL");
    EXPECT_EQ(task.result->failure.attempt, 3);
  });
}

TEST_F(WorkerSupervision, AStopSignalEndsWorkersThatHandInWhatTheyHave) {
  work_.on_begin = [&] {
    if (work_.num_begun == 2) ::kill(::getpid(), SIGTERM);
  };
  EXPECT_EQ(run(options({"slow", "slow"})), SIGTERM);
  EXPECT_EQ(squares(), 2);
  EXPECT_TRUE(store_->leases(group_).empty());
  ASSERT_EQ(work_.deaths.size(), 2u);
  EXPECT_TRUE(work_.deaths[0].told_to_end && work_.deaths[0].ended_well());
  work_.on_begin = {};
  EXPECT_EQ(run(options({"work"})), 0);
  EXPECT_EQ(squares(), 20);
}

TEST_F(WorkerSupervision, AnOwnerThatIsGoneGivesItsLeasesBack) {
  const std::string gone = WorkerProcess().name() + "0";
  ASSERT_EQ(store_->claim({.group = group_, .owner = gone, .max_ranges = 20, .lease = 1h}).size(),
            20u);
  EXPECT_EQ(run(options({"work"})), 0);
  EXPECT_EQ(squares(), 20);
}

TEST_F(WorkerSupervision, WaitsForAServerThatComesBack) {
  int outages = 0;
  std::vector<std::chrono::milliseconds> warnings;
  WorkerSupervisor supervisor(
      [&](const jobs::StoreOptions& server) { return open_leaving_server(path_, outages, server); },
      Log(LogLevel::Quiet),
      [&](std::chrono::milliseconds left) {
        warnings.push_back(left);
        return "away";
      });
  work_.on_begin = [&] {
    if (work_.num_begun == 1) outages = 3;
  };
  EXPECT_EQ(supervisor.run(options({"work"}), work_), 0);
  EXPECT_EQ(squares(), 20);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_LE(warnings[0], kServerLimit);
}

TEST_F(WorkerSupervision, AStopSignalEndsTheWaitForAServer) {
  int outages = 0;
  WorkerSupervisor supervisor(
      [&](const jobs::StoreOptions& server) { return open_leaving_server(path_, outages, server); },
      Log(LogLevel::Quiet));
  work_.on_begin = [&] {
    outages = 1'000'000;
    ::kill(::getpid(), SIGTERM);
  };
  EXPECT_THROW(supervisor.run(options({"slow"}), work_), IoError);
  // The worker may store the task that it was computing. No worker is left to begin another task.
  EXPECT_LE(squares(), 1);
  EXPECT_EQ(work_.num_begun, 1);
}

}  // namespace
}  // namespace convoy::workers
