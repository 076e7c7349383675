// SPDX-License-Identifier: Apache-2.0
//
// For tests of run_ranks: has a folder (HERE in the environment of ranks), runs scripts as ranks,
// and sends signals to this process at the right moment.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::launch {

class Launcher : public ::testing::Test {
 protected:
  Launcher() {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("HERE", folder_.c_str(), 1);
  }
  ~Launcher() override { std::filesystem::remove_all(folder_); }

  LaunchSpec spec(int ranks, const std::string& script) const {
    LaunchSpec made;
    made.program = {"/bin/sh", "-c", script};
    made.job.num_local_ranks = ranks;
    made.job.world_size = ranks;
    made.logs.console = Console::Silent;
    made.logs.layout = LogLayout::Convoy;
    made.logs.folder = folder_ / "logs";
    made.early_exit_wait = std::chrono::milliseconds(500);
    return made;
  }

  LaunchReport run(int ranks, const std::string& script) {
    const auto begin = std::chrono::steady_clock::now();
    LaunchReport report = run_ranks(spec(ranks, script));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report;
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  // Waits until the file has this many lines. Scripts append a line to report their progress.
  void wait_for_lines(const std::string& name, long lines) const {
    for (int turn = 0; turn < 1000; ++turn) {
      if (std::filesystem::exists(folder_ / name)) {
        const std::string text = file(name);
        if (std::count(text.begin(), text.end(), '\n') >= lines) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << name << " never had " << lines << " lines";
  }

  // Sends `signals` to this process, one after another, once the file has `lines` lines.
  std::thread signals_after(const std::string& name, long lines, std::vector<int> signals) const {
    return std::thread([this, name, lines, signals] {
      // This thread blocks all signals, so they reach the thread that runs the launcher.
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      wait_for_lines(name, lines);
      for (const int signal : signals) {
        kill(getpid(), signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    });
  }

  // A zombie counts as ended: a killed orphan remains a zombie until init reaps it.
  static bool lives(pid_t pid) {
    if (kill(pid, 0) != 0 && errno == ESRCH) return false;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    return state != "Z" && state != "X" && !state.empty();
  }

  // Succeeds if every process whose number is in the file has ended within the time.
  ::testing::AssertionResult all_gone(const std::string& name,
                                      std::chrono::milliseconds within) const {
    std::istringstream numbers(file(name));
    for (pid_t pid; numbers >> pid;) {
      for (auto left = within; lives(pid); left -= std::chrono::milliseconds(10)) {
        if (left.count() <= 0)
          return ::testing::AssertionFailure() << "process " << pid << " lives";
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return ::testing::AssertionSuccess();
  }

  std::filesystem::path folder_;
  double seconds_ = 0;
};

}  // namespace convoy::launch
