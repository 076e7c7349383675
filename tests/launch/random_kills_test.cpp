// SPDX-License-Identifier: Apache-2.0
//
// Kills ranks, their child processes, guards and launchers at random times. The test proves that
// each kill hit a running process. After each kill nothing is left, and the next start works at
// once. CONVOY_KILLS=N makes N kills. To repeat a run:
//   CONVOY_KILL_SEED=N launch_program_tests --gtest_filter=RandomKills.*
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

int wanted_kills() {
  const char* const wish = std::getenv("CONVOY_KILLS");
  return wish != nullptr ? std::stoi(wish) : 40;
}

enum class Victim { Rank, AllRanks, Grandchild, Daemon, Launcher, LauncherAndRank, Everything };
constexpr Victim kVictims[] = {
    Victim::Rank,     Victim::Rank,     Victim::AllRanks,        Victim::Grandchild, Victim::Daemon,
    Victim::Launcher, Victim::Launcher, Victim::LauncherAndRank, Victim::Everything};

// Returns two seconds on an idle machine, and more in proportion to the load on a busy machine.
milliseconds allowed_wait() {
  double load[1] = {};
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double share = ::getloadavg(load, 1) == 1 ? std::max(1.0, load[0] / cores) : 1.0;
  return milliseconds(static_cast<int64_t>(2'000 * share));
}

const char* name_of(Victim victim) {
  switch (victim) {
    case Victim::Rank:
      return "a rank";
    case Victim::AllRanks:
      return "all ranks";
    case Victim::Grandchild:
      return "a grandchild";
    case Victim::Daemon:
      return "a daemon";
    case Victim::Launcher:
      return "the launcher";
    case Victim::LauncherAndRank:
      return "the launcher and a rank";
    case Victim::Everything:
      return "everything but the guard";
  }
  return "";
}

// A rank with a data loader that it needs, and a forgotten daemon. Each process writes `KIND
// NUMBER` and then counts without end, so a growing count shows that it lives.
constexpr const char* kRank = R"(
echo $MASTER_PORT >> $HERE/ports
[ $STUBBORN = yes ] && trap '' TERM
setsid sh -c 'echo daemon $$ >> $HERE/work; exec sleep 300' &
sh -c 'echo grandchild $$ >> $HERE/work; exec sleep 300' &
loader=$!
echo rank $$ >> $HERE/work
while kill -0 $loader 2>/dev/null; do echo x >> $HERE/beats; sleep 0.01; done
exit 3
)";

class RandomKills : public LaunchTest {
 protected:
  void SetUp() override {
    const char* seed = std::getenv("CONVOY_KILL_SEED");
    seed_ = seed != nullptr ? static_cast<uint32_t>(std::stoul(seed)) : std::random_device{}();
    random_.seed(seed_);
    write("rank.sh", kRank);
  }

  size_t below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }
  milliseconds any_time(int64_t limit_ms) {
    return milliseconds(std::uniform_int_distribution<int64_t>(0, limit_ms)(random_));
  }

  std::vector<pid_t> workers(const std::string& kind) const {
    std::istringstream lines(file("work"));
    std::vector<pid_t> found;
    std::string word;
    for (pid_t pid; lines >> word >> pid;)
      if (word == kind) found.push_back(pid);
    return found;
  }

  std::vector<pid_t> victims(Victim victim, pid_t launcher) {
    const std::vector<pid_t> ranks = workers("rank");
    const auto one = [&](const std::vector<pid_t>& of) {
      return std::vector<pid_t>{of[below(of.size())]};
    };
    switch (victim) {
      case Victim::Rank:
        return one(ranks);
      case Victim::AllRanks:
        return ranks;
      case Victim::Grandchild:
        return one(workers("grandchild"));
      case Victim::Daemon:
        return one(workers("daemon"));
      case Victim::Launcher:
        return {launcher};
      case Victim::LauncherAndRank:
        return {launcher, one(ranks)[0]};
      case Victim::Everything:
        break;
    }
    std::vector<pid_t> all = {launcher};
    for (const char* kind : {"rank", "grandchild", "daemon"})
      for (const pid_t pid : workers(kind)) all.push_back(pid);
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }

  void one_life(int number_of_ranks, Victim victim);

  uint32_t seed_ = 0;
  std::mt19937 random_;
  int num_kills_ = 0;
};

// Unnamed shared memory ends with its processes; a name in /dev/shm would remain.
bool uses_named_shared_memory(pid_t pid) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (line.find("/dev/shm/") != std::string::npos) return true;
  return false;
}

size_t bytes_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

void RandomKills::one_life(int number_of_ranks, Victim victim) {
  for (const char* name : {"work", "beats", "ports"}) fs::remove(path(name));
  LaunchStart what;
  what.arguments = {"--nproc-per-node", std::to_string(number_of_ranks), "sh", path("rank.sh")};
  what.environment["STUBBORN"] = below(5) == 0 ? "yes" : "no";
  const auto launch = start(what);
  ASSERT_TRUE(wait_for_lines("work", 3 * number_of_ranks)) << launch->errors();
  std::this_thread::sleep_for(any_time(15));

  // The job runs: the ranks count, and every victim lives until the signal.
  const size_t before = bytes_of(path("beats"));
  ASSERT_TRUE(wait_until([&] { return bytes_of(path("beats")) > before; }, milliseconds(5'000)));
  for (const pid_t pid : survivors()) ASSERT_FALSE(uses_named_shared_memory(pid));
  const std::vector<pid_t> chosen = victims(victim, launch->pid());
  for (const pid_t pid : chosen) {
    ASSERT_TRUE(is_alive(pid) || chosen.size() > 1) << pid;
    ::kill(pid, SIGKILL);
  }
  ++num_kills_;

  // The job does not depend on a daemon, so it continues without it until it is asked to stop.
  if (victim == Victim::Daemon) {
    const size_t now = bytes_of(path("beats"));
    ASSERT_TRUE(wait_until([&] { return bytes_of(path("beats")) > now; }, milliseconds(5'000)));
    ASSERT_TRUE(launch->running());
    launch->signal(SIGINT);
    launch->signal(SIGTERM);
  }
  const auto killed_at = std::chrono::steady_clock::now();
  const LaunchEnd end = launch->wait(milliseconds(10'000));
  ASSERT_FALSE(end.timed_out);
  EXPECT_NE(end.status, 0);
  if (victim == Victim::Rank || victim == Victim::AllRanks) {
    EXPECT_EQ(end.status, 128 + SIGKILL) << end.errors;
  }
  if (victim == Victim::Grandchild) {
    EXPECT_EQ(end.status, 3) << end.errors;
  }
  const auto left = allowed_wait() - std::chrono::duration_cast<milliseconds>(
                                         std::chrono::steady_clock::now() - killed_at);
  ASSERT_TRUE(nothing_left(std::max(left, milliseconds(0))));
}

TEST_F(RandomKills, LeaveNothingAndTheNextStartWorks) {
  const int kills = wanted_kills();
  for (int life = 0; num_kills_ < kills; ++life) {
    const int ranks = 1 + static_cast<int>(below(3));
    const Victim victim = kVictims[below(std::size(kVictims))];
    SCOPED_TRACE(
        fmt::format("CONVOY_KILL_SEED={} launch_program_tests --gtest_filter=RandomKills.*"
                    ", life {}: {} of {} ranks",
                    seed_, life, name_of(victim), ranks));
    one_life(ranks, victim);
    if (HasFailure()) return;
  }
  LaunchStart next;
  next.arguments = {"--nproc-per-node", "2", "true"};
  EXPECT_EQ(run(next).status, 0);
  fmt::print("{} kills of processes at work, seed {}\n", num_kills_, seed_);
}

TEST_F(RandomKills, AtAnyMomentOfTheStart) {
  // The kills come between the launcher's first instruction and the end of its start, when the
  // least is known of the files and processes that it has made.
  const int starts = wanted_kills() / 4;
  for (int life = 0; life < starts; ++life) {
    SCOPED_TRACE(fmt::format("CONVOY_KILL_SEED={}, life {}", seed_, life));
    LaunchStart what;
    what.arguments = {"--nproc-per-node",
                      "4",
                      "--log-dir",
                      path("logs"),
                      "sh",
                      "-c",
                      "echo $MASTER_PORT >> $HERE/ports; setsid sleep 300 & sleep 300"};
    const auto launch = start(what);
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, 40'000)(random_)));
    ASSERT_TRUE(launch->running());
    launch->signal(SIGKILL);
    EXPECT_EQ(launch->wait().status, 128 + SIGKILL);
    ASSERT_TRUE(nothing_left());
  }
}

}  // namespace
}  // namespace convoy::testing
