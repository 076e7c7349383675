// SPDX-License-Identifier: Apache-2.0
//
// Workers, the runner, or all processes are killed at random times. The results equal the results
// of an unbroken run, byte for byte, and a kill costs one range of each worker that it ends.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "convoy/core/jobs/job_store.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
using nlohmann::json;

int number_of(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::atoi(text);
}

class SweepRandomKills : public SweepTest {
 protected:
  SweepRandomKills()
      : kills_(number_of("CONVOY_SWEEP_KILLS", 100)),
        seed_(number_of("CONVOY_SWEEP_KILL_SEED", 1)),
        random_(static_cast<unsigned>(seed_)) {}

  std::vector<std::string> command(const std::string& folder, int workers, int64_t guesses) const {
    return {"ssm",
            "--num-seeds",
            "3",
            "--student-dims",
            "30",
            "70",
            "--gnc-num-samples",
            std::to_string(guesses),
            "--gd",
            "--gd-epochs",
            "500",
            "--results-dir",
            folder,
            "--workers",
            std::to_string(workers)};
  }

  // Kills a worker, the runner, or all processes. Returns the greatest number of workers that may
  // have ended.
  int64_t kill_some(SweepProcess& sweep) {
    const unsigned choice = random_() % 4;
    // A running runner would replace the workers that this process, which may be slow, has killed
    // already.
    if (choice >= 2) ::kill(sweep.pid(), SIGSTOP);
    const std::vector<pid_t> workers = sweep.workers();
    if (choice < 2 && !workers.empty()) {
      ::kill(workers[random_() % workers.size()], SIGKILL);
      return 1;
    }
    if (choice == 3)
      for (const pid_t worker : workers) ::kill(worker, SIGKILL);
    ::kill(sweep.pid(), SIGKILL);
    sweep.wait();
    // Workers end with their runner, and one more worker may just have started.
    return static_cast<int64_t>(workers.size()) + 1;
  }

  std::chrono::milliseconds pause(double mean_ms) {
    std::uniform_real_distribution<double> share(0, 2);
    return std::chrono::milliseconds(static_cast<int64_t>(mean_ms * share(random_)));
  }

  double time_of(const std::vector<std::string>& arguments) {
    const auto begin = Clock::now();
    const SweepEnd end = run(arguments);
    EXPECT_EQ(end.status, 0) << end.errors;
    return Milliseconds(Clock::now() - begin).count();
  }

  // Returns the results without their times.
  std::string results_of(const std::string& folder) {
    const SweepEnd wide = run({"export", "--format", "wide", "--results-dir", folder});
    EXPECT_EQ(wide.status, 0) << wide.errors;
    const SweepEnd tidy = run({"show", "--json", "--results-dir", folder});
    EXPECT_EQ(tidy.status, 0) << tidy.errors;
    json rows = json::parse(tidy.output);
    for (json& row : rows)
      for (const char* const time : {"seconds", "guesses_per_second"}) row.erase(time);
    return wide.output + rows.dump(1) + stored_values(folder);
  }

  std::string stored_values(const std::string& folder) const {
    const auto store = jobs::open_store(text(folder + "/sweep.db"));
    std::string values;
    for (const jobs::Group& group : store->groups())
      store->for_each_task(group.number, [&](const jobs::TaskRecord& task) {
        json payload = task.result ? json::parse(task.result->payload) : json();
        payload.erase("microseconds");
        values += task.id + " " + payload.dump() + "\n";
      });
    return values;
  }

  int kills_;
  int seed_;
  std::mt19937 random_;
};

TEST_F(SweepRandomKills, ResultsAreThoseOfAnUnbrokenRun) {
  // The number of guesses that this machine computes in about three seconds at its present load.
  constexpr int64_t kProbe = 100'000;
  constexpr double kUnbroken_ms = 3'000;
  const double probe_ms = time_of(command("probe", 2, kProbe));
  const double again_ms = time_of(command("probe", 2, kProbe));
  const double more_ms = time_of(command("probe", 2, 4 * kProbe));
  const double each_ms = std::max(more_ms - std::min(probe_ms, again_ms), 10.0) / (4.0 * kProbe);
  const auto guesses =
      std::clamp(static_cast<int64_t>(kUnbroken_ms / each_ms), kProbe, 100 * kProbe);
  const double unbroken_ms = time_of(command("unbroken", 2, guesses));
  const std::string wanted = results_of("unbroken");
  ASSERT_GT(wanted.size(), 1000u);
  // A kill takes at most 300 ms on average, however long the pauses should be.
  const double budget_ms = 300.0 * kills_;
  const auto begin = Clock::now();
  const int counts[] = {2, 1, 4};
  std::unique_ptr<SweepProcess> sweep;
  int runs = 0, whole = 0;
  for (int done = 0; done < kills_; ++done) {
    if (sweep == nullptr || !sweep->running()) {
      if (sweep != nullptr && sweep->wait().status == 0) {
        // The sweep ended before its kills, so the remaining kills are for a new store.
        EXPECT_EQ(results_of("broken"), wanted) << "seed " << seed_;
        std::filesystem::remove_all(path("broken"));
        ++whole;
      }
      sweep = start(command("broken", counts[runs++ % 3], guesses));
    }
    const double left_ms = budget_ms - Milliseconds(Clock::now() - begin).count();
    std::this_thread::sleep_for(
        pause(std::min(unbroken_ms / 20, std::max(left_ms, 0.0) / (kills_ - done))));
    kill_some(*sweep);
  }
  sweep->wait();
  const SweepEnd last = run(command("broken", 2, guesses));
  ASSERT_EQ(last.status, 0) << last.errors;
  EXPECT_EQ(results_of("broken"), wanted) << "seed " << seed_;
  fmt::print("{} kills in {:.1f} s over {} runners, {} sweeps; an unbroken run took {:.1f} s\n",
             kills_, Milliseconds(Clock::now() - begin).count() / 1000, runs, whole + 1,
             unbroken_ms / 1000);
}

TEST_F(SweepRandomKills, AKillCostsTheProgramThatRan) {
  // The programs run longer than the time for which short ranges are collected before they are
  // stored.
  const auto cells_of = [](int workers) -> std::vector<std::string> {
    return {"run",
            "--num-seeds",
            "60",
            "--result",
            "loss",
            "--workers",
            std::to_string(workers),
            "--",
            "sh",
            "-c",
            "echo {seed} >>ran; sleep 0.1; echo '{{\"loss\": {seed}}}'"};
  };
  int64_t ended = 0;
  std::unique_ptr<SweepProcess> sweep;
  for (int kill = 0; kill < 15; ++kill) {
    if (sweep == nullptr || !sweep->running()) sweep = start(cells_of(1 + kill % 4));
    std::this_thread::sleep_for(pause(150));
    if (sweep->running()) ended += kill_some(*sweep);
  }
  sweep->wait();
  const SweepEnd last = run(cells_of(4));
  ASSERT_EQ(last.status, 0) << last.errors;
  std::ifstream file(path("ran"));
  int64_t ran = 0;
  for (std::string line; std::getline(file, line);) ++ran;
  EXPECT_GE(ran, 60);
  EXPECT_LE(ran, 60 + ended);
}

}  // namespace
}  // namespace convoy::testing
