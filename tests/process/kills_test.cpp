// SPDX-License-Identifier: Apache-2.0
//
// Workers, the coordinator, or all processes are killed at random times, and the run is resumed
// with another number of workers. The output equals the output of an unbroken run, byte for byte,
// and a kill costs only the texts in progress.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "convoy/core/jobs/job_store.h"
#include "process/probe_run.h"

namespace convoy::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kRows = 500;
constexpr int64_t kRowsInFlight = 8;
constexpr int64_t kTextsPerRow = 4;
constexpr int64_t kMostTokens = 9;

int number_of(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::atoi(text);
}

class RowRandomKills : public ProbeTest, public ::testing::WithParamInterface<std::string> {
 protected:
  RowRandomKills()
      : kills_(number_of("CONVOY_ROW_KILLS", 50)),
        seed_(number_of("CONVOY_ROW_KILL_SEED", 1)),
        random_(static_cast<unsigned>(seed_)) {}

  std::vector<std::string> command(const std::string& folder, int64_t workers) const {
    std::vector<std::string> more = {fmt::format("rows={}", kRows), "step_us=1500", "batch=8",
                                     fmt::format("rows_in_flight={}", kRowsInFlight),
                                     "name=" + folder};
    if (GetParam() == "postgres")
      more.push_back(std::string("store=") + std::getenv("CONVOY_TEST_POSTGRES"));
    return words(folder, workers, more);
  }

  // Kills a worker, the coordinator, or all processes. Returns the greatest number of workers that
  // may have ended.
  int64_t kill_some(ProbeRun& run) {
    const unsigned choice = random_() % 4;
    // A running coordinator would replace the workers that this process, which may be slow, has
    // killed already.
    if (choice >= 2) ::kill(run.pid(), SIGSTOP);
    const std::vector<pid_t> workers = run.workers();
    if (choice < 2 && !workers.empty()) {
      ::kill(workers[random_() % workers.size()], SIGKILL);
      return 1;
    }
    if (choice == 3)
      for (const pid_t worker : workers) ::kill(worker, SIGKILL);
    ::kill(run.pid(), SIGKILL);
    run.wait();
    // Workers end with their coordinator, and one more worker may just have started.
    return static_cast<int64_t>(workers.size()) + 1;
  }

  Clock::duration pause(double mean_seconds) {
    std::uniform_real_distribution<double> share(0, 2);
    return std::chrono::duration_cast<Clock::duration>(Seconds(mean_seconds * share(random_)));
  }

  void check(const std::string& folder, int64_t ended) {
    EXPECT_EQ(output(folder), wanted_) << "seed " << seed_;
    const int64_t again = tokens_made(folder) - wanted_tokens_;
    EXPECT_GE(again, 0);
    EXPECT_LE(again, ended * kRowsInFlight * kTextsPerRow * kMostTokens) << "seed " << seed_;
    again_ += again;
    ended_ += ended;
  }

  int kills_;
  int seed_;
  std::mt19937 random_;
  std::string wanted_;
  int64_t wanted_tokens_ = 0;
  int64_t again_ = 0, ended_ = 0;
};

TEST_P(RowRandomKills, OutputIsThatOfAnUnbrokenRun) {
  if (GetParam() == "postgres" && std::getenv("CONVOY_TEST_POSTGRES") == nullptr)
    GTEST_SKIP() << "no server in CONVOY_TEST_POSTGRES";
  const auto unbroken_begin = Clock::now();
  const ProbeEnd unbroken = run(command("unbroken", 2));
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  const double unbroken_seconds = Seconds(Clock::now() - unbroken_begin).count();
  wanted_ = output("unbroken");
  wanted_tokens_ = tokens_made("unbroken");
  ASSERT_EQ(std::count(wanted_.begin(), wanted_.end(), '\n'), kRows);
  const auto begin = Clock::now();
  const int64_t counts[] = {2, 1, 3};
  std::unique_ptr<ProbeRun> going;
  int starts = 0, whole = 0;
  int64_t ended = 0;
  for (int kill = 0; kill < kills_; ++kill) {
    if (going == nullptr || !going->running()) {
      if (going != nullptr && going->wait().status == 0) {
        // The run ended before its kills, so the remaining kills are for a new run.
        check(fmt::format("broken{}", whole++), std::exchange(ended, 0));
      }
      going = start(command(fmt::format("broken{}", whole), counts[starts++ % 3]));
    }
    std::this_thread::sleep_for(pause(std::min(unbroken_seconds / 10, 0.4)));
    ended += kill_some(*going);
  }
  const std::string folder = fmt::format("broken{}", whole);
  const ProbeEnd left = going->wait();
  if (left.status != 0) {
    const ProbeEnd last = run(command(folder, 2));
    ASSERT_EQ(last.status, 0) << last.errors;
  }
  check(folder, ended);
  fmt::print(
      "{} kills in {:.1f} s over {} coordinators, {} runs; an unbroken run took {:.1f} s; "
      "{} tokens made again for {} workers ended at most, {} in a run\n",
      kills_, Seconds(Clock::now() - begin).count(), starts, whole + 1, unbroken_seconds, again_,
      ended_, wanted_tokens_);
}

INSTANTIATE_TEST_SUITE_P(Stores, RowRandomKills, ::testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace convoy::testing
