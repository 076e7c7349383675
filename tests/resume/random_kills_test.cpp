// SPDX-License-Identifier: Apache-2.0
//
// Kills runs that save at every step, at random times. There is always a whole checkpoint, and the
// result has the bits of an unbroken run. Runs that continue with other ranks and strategies have
// the rows of every step exactly once. CONVOY_KILLS=N makes at least N kills. To repeat a run:
//   CONVOY_KILL_SEED=N resume_tests --gtest_filter=RandomKills.*
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "convoy/core/io/snapshot_store.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int64_t kSteps = 16;

const Settings& settings() {
  static const Settings settings = {"train.batch_size=1", "train.grad_accum=2",
                                    "train.save_steps=1", fmt::format("train.steps={}", kSteps)};
  return settings;
}

// Returns what the store reports about published checkpoints that are damaged.
std::vector<std::string> damaged_checkpoints(const TrainFixture& fixture, const std::string& name) {
  std::vector<std::string> notices;
  io::SnapshotStore(fixture.run_folder(name) / "checkpoints", 1).newest_valid(notices);
  return notices;
}

// Kills the launcher and the ranks together, the launcher alone, or one rank: as a power failure, a
// killed shell, or the out-of-memory killer does.
void kill_somehow(TrainProcess& process, std::mt19937& random) {
  switch (random() % 3) {
    case 0:
      process.kill_everything();
      break;
    case 1:
      process.signal(SIGKILL);
      break;
    default:
      for (const pid_t rank : process.ranks()) ::kill(rank, SIGKILL);
  }
}

int64_t wanted_kills() {
  const char* const wish = std::getenv("CONVOY_KILLS");
  return wish != nullptr ? std::stoll(wish) : 10;
}

class RandomKills : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* seed = std::getenv("CONVOY_KILL_SEED");
    seed_ = seed != nullptr ? static_cast<uint32_t>(std::stoul(seed)) : std::random_device{}();
    random_.seed(seed_);
  }
  microseconds random_time(microseconds limit) {
    return microseconds(std::uniform_int_distribution<int64_t>(0, limit.count())(random_));
  }
  // Starts or resumes the run and kills it, mostly after its first step. Returns false if the run
  // ended by itself.
  bool one_life(const std::string& name, const Settings& settings);

  TrainFixture fixture_;
  uint32_t seed_ = 0;
  std::mt19937 random_;
  microseconds step_time_{0};
  int64_t num_kills_at_work_ = 0;
  int64_t num_kills_ = 0;
};

bool RandomKills::one_life(const std::string& name, const Settings& settings) {
  const int64_t starts_before = fixture_.num_events(name, "start");
  const auto at_work = [&] { return fixture_.num_events(name, "start") > starts_before; };
  TrainProcess process = fixture_.start(name, settings);
  if (random_() % 10 == 0) {
    std::this_thread::sleep_for(random_time(std::chrono::milliseconds(600)));
  } else {
    process.wait_until(at_work);
    std::this_thread::sleep_for(random_time(4 * step_time_));
  }
  if (process.running()) {
    ++num_kills_;
    num_kills_at_work_ += at_work() ? 1 : 0;
    kill_somehow(process, random_);
  }
  const Ended ended = process.wait();
  EXPECT_TRUE(ended.status == 0 || ended.status == 128 + SIGKILL) << ended.errors;
  return ended.status != 0;
}

TEST_F(RandomKills, LeaveAWholeCheckpointAndTheSameBits) {
  const auto begin = Clock::now();
  ASSERT_EQ(fixture_.run("unbroken", settings()).status, 0);
  // The time includes the start, so the kills are spread over a few steps of each life.
  step_time_ = std::chrono::duration_cast<microseconds>(Clock::now() - begin) / (2 * kSteps);
  const int64_t kills = wanted_kills();
  for (int64_t round = 0; num_kills_at_work_ < kills; ++round) {
    const std::string name = fmt::format("round-{}", round);
    bool killed = true;
    while (killed) {
      SCOPED_TRACE(fmt::format("CONVOY_KILL_SEED={}, round {}, kill {}", seed_, round, num_kills_));
      killed = one_life(name, settings());
      ASSERT_TRUE(damaged_checkpoints(fixture_, name).empty())
          << damaged_checkpoints(fixture_, name).front();
      if (HasFailure()) return;
    }
    expect_same_result(fixture_, "unbroken", name);
    ASSERT_FALSE(HasFailure()) << "CONVOY_KILL_SEED=" << seed_ << " round " << round;
  }
  RecordProperty("kills", static_cast<int>(num_kills_));
  fmt::print("{} kills, {} of runs at work, seed {}\n", num_kills_, num_kills_at_work_, seed_);
}

// The global batch of 12 rows is the same for 1 to 4 ranks. The loss of each step identifies its
// rows.
TEST_F(RandomKills, WithOtherRanksAndStrategiesLoseAndDoubleNoRow) {
  const Settings batch = {"train.batch_size=3",         "train.grad_accum=0",
                          "train.global_batch_size=12", "train.save_steps=1",
                          "tuning.mode=full",           fmt::format("train.steps={}", kSteps)};
  const auto begin = Clock::now();
  const Ended unbroken = fixture_.run("unbroken", batch);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  step_time_ = std::chrono::duration_cast<microseconds>(Clock::now() - begin) / (2 * kSteps);
  const std::map<int64_t, double> wanted = fixture_.losses("unbroken");
  const int64_t kills = wanted_kills();
  for (int64_t round = 0; num_kills_at_work_ < kills; ++round) {
    const std::string name = fmt::format("round-{}", round);
    bool killed = true;
    while (killed) {
      SCOPED_TRACE(fmt::format("CONVOY_KILL_SEED={}, round {}, kill {}", seed_, round, num_kills_));
      const char* const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
      Settings life = batch;
      life.insert(life.end(), {"--nproc", std::to_string(1 + random_() % 4),
                               fmt::format("parallel.strategy={}", strategies[random_() % 4])});
      killed = one_life(name, life);
      ASSERT_TRUE(damaged_checkpoints(fixture_, name).empty())
          << damaged_checkpoints(fixture_, name).front();
      if (HasFailure()) return;
    }
    const std::map<int64_t, double> losses = fixture_.losses(name);
    ASSERT_EQ(losses.size(), wanted.size());
    for (const auto& [step, loss] : wanted)
      ASSERT_NEAR(losses.at(step), loss, 1e-3 * std::max(1.0, loss))
          << "step " << step << ", CONVOY_KILL_SEED=" << seed_ << " round " << round;
  }
  fmt::print("{} kills, {} of runs at work, seed {}\n", num_kills_, num_kills_at_work_, seed_);
}

}  // namespace
}  // namespace convoy::testing
