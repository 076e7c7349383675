// SPDX-License-Identifier: Apache-2.0
//
// For tests of code that needs several ranks. A body is written as a disabled test of the same
// program; start_ranks() runs this program once per rank, with torchrun's environment, on this body
// only. It does not use convoy/launch, so layers below that can use it too.
//
//   RANK_BODY(Sums) { auto group = comm::join_group(...); EXPECT_EQ(...); }
//   TEST(Group, Sums) { expect_all_well(start_ranks(2, "Sums")); }
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::testing {

// Runs the body of a rank. A failed expectation ends the rank with 1, and a thrown Error with its
// code.
inline void run_rank_body(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.json_line().c_str());
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(error.code()));
  }
}

#define RANK_BODY(name)                                                                   \
  static void rank_body_##name();                                                         \
  TEST(RankBody, DISABLED_##name) { ::convoy::testing::run_rank_body(rank_body_##name); } \
  static void rank_body_##name()

struct RankResult {
  int exit_code = 0;   // exit code, or 128 + signal
  double seconds = 0;  // from the first rank's start to this rank's end
  std::string output;  // stdout and stderr
};

enum class Rendezvous { File, Tcp };

struct RankStart {
  Rendezvous rendezvous = Rendezvous::File;
  std::map<std::string, std::string> environment = {};
};

namespace detail {

inline pid_t start_rank(const std::map<std::string, std::string>& environment,
                        const std::string& body, const std::filesystem::path& output) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(70);
  const int file = open(output.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const std::string filter = "--gtest_filter=RankBody.DISABLED_" + body;
  execl("/proc/self/exe", "ranks", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
  _exit(127);
}

}  // namespace detail

// Blocks until all ranks have ended. After ten minutes, more than any busy machine needs, the ranks
// are killed.
inline std::vector<RankResult> start_ranks(int count, const std::string& body,
                                           const RankStart& start = {}) {
  const TemporaryFolder folder;
  std::map<std::string, std::string> environment = start.environment;
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(count);
  environment["OMP_NUM_THREADS"] = std::to_string(1);  // GCC 12 warns of a literal: PR105651
  if (start.rendezvous == Rendezvous::File)
    environment["CONVOY_STORE_FILE"] = folder.path() / "store";
  else  // below the kernel's ports for connections
    environment["MASTER_PORT"] = std::to_string(20000 + getpid() % 9000);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < count; ++rank) {
    environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
    pids.push_back(detail::start_rank(environment, body, folder.path() / std::to_string(rank)));
  }
  std::vector<RankResult> results(pids.size());
  size_t running = pids.size();
  bool killed = false;
  while (running > 0) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (size_t rank = 0; rank < pids.size(); ++rank) {
      int status = 0;
      if (pids[rank] == 0 || waitpid(pids[rank], &status, WNOHANG) != pids[rank]) continue;
      results[rank].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      results[rank].seconds = seconds;
      results[rank].output = read_file(folder.path() / std::to_string(rank));
      pids[rank] = 0;
      --running;
    }
    if (seconds > 600 && !killed) {
      for (const pid_t pid : pids)
        if (pid != 0) kill(pid, SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return results;
}

inline void expect_all_well(const std::vector<RankResult>& results) {
  for (size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].exit_code, 0) << "rank " << rank << ":\n" << results[rank].output;
}

}  // namespace convoy::testing
