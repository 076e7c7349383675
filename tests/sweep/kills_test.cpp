// SPDX-License-Identifier: Apache-2.0
//
// Workers, runner and all of them killed at random times: the results are those of an unbroken run, byte for byte.
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

class SweepRandomKills : public SweepTest {};

using Clock = std::chrono::steady_clock;

int number_of(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::atoi(text);
}

std::vector<std::string> command(const std::string& folder, int workers) {
  return {"ssm",  "--num-seeds",       "3",       "--student-dims", "30",
          "70",   "--gnc-num-samples", "4000000", "--gd",           "--gd-epochs",
          "2000", "--results-dir",     folder,    "--workers",      std::to_string(workers)};
}

TEST_F(SweepRandomKills, ResultsAreThoseOfAnUnbrokenRun) {
  const int kills = number_of("CONVOY_SWEEP_KILLS", 20);
  const int seed = number_of("CONVOY_SWEEP_KILL_SEED", 1);
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto begin = Clock::now();
  ASSERT_EQ(run(command("unbroken", 2)).status, 0);
  const auto unbroken_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  // Kills are spread over a run and a half: some come soon after the one before.
  const int longest_ms = std::max(20, static_cast<int>(3 * unbroken_ms.count() / kills));
  const int counts[] = {2, 1, 4};
  std::unique_ptr<SweepProcess> sweep;
  int runs = 0, done = 0;
  while (done < kills) {
    if (sweep == nullptr || !sweep->running()) {
      if (sweep != nullptr && sweep->wait().status == 0) {
        // It was faster than the kills: the rest of them meets a fresh store.
        std::filesystem::remove_all(path("broken"));
      }
      sweep = start(command("broken", counts[runs++ % 3]));
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(random() % static_cast<unsigned>(longest_ms)));
    const std::vector<pid_t> workers = sweep->workers();
    const unsigned choice = random() % 4;
    if (choice < 2 && !workers.empty()) {
      ::kill(workers[random() % workers.size()], SIGKILL);
    } else {
      // The runner alone, or with all its workers at the same time.
      if (choice == 3)
        for (const pid_t worker : workers) ::kill(worker, SIGKILL);
      ::kill(sweep->pid(), SIGKILL);
      sweep->wait();
    }
    ++done;
  }
  if (sweep->running()) sweep->wait();
  const SweepEnd last = run(command("broken", 2));
  ASSERT_EQ(last.status, 0) << last.errors;
  const auto tables = [&](const std::string& folder) {
    const SweepEnd wide = run({"export", "--format", "wide", "--results-dir", folder});
    EXPECT_EQ(wide.status, 0) << wide.errors;
    return wide.output;
  };
  const std::string unbroken = tables("unbroken");
  EXPECT_EQ(unbroken, tables("broken")) << "seed " << seed;
  EXPECT_GT(unbroken.size(), 100u);
}

}  // namespace
}  // namespace convoy::testing
