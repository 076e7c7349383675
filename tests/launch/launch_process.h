// SPDX-License-Identifier: Apache-2.0
//
// Drives the real `convoy launch` as a shell, a job system or an attacker would: starts it, waits
// for its ranks' output, signals or kills it, and looks for anything that it left behind. Use it
// from one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/temporary_folder.h"

namespace convoy::testing {

using std::chrono::milliseconds;

// An end that nothing delays takes less time than this, even on a busy machine. Anything that could
// delay it in a test takes longer.
constexpr double kHeldUpSeconds = 10;

// A shell command that writes the numbers of the process and of the group's port to files. kWait
// then waits for a signal.
inline const std::string kReady = "echo $$ >> $HERE/pids; echo $MASTER_PORT >> $HERE/ports; ";
inline const std::string kWait = "while :; do sleep 0.02; done";

struct LaunchEnd {
  int status = -1;         // as in a shell: 128 + n for signal n
  bool timed_out = false;  // it exceeded the patience and was killed
  double seconds = 0;
  std::string output;
  std::string errors;

  std::string last_line() const;  // the last line of stderr
};

struct LaunchStart {
  std::vector<std::string> arguments;              // behind `convoy launch`
  std::map<std::string, std::string> environment;  // added to this process's variables, as is HERE
  std::vector<std::string> removed_variables;
  std::string program;                // empty: the `convoy` of the build folder
  std::vector<std::string> before;    // a program that starts `convoy`, such as nohup
  std::function<void()> before_exec;  // in the child; only async-signal-safe calls
  bool own_group = true;              // in a process group of its own
};

// A running `convoy launch`, whose stdout and stderr go to files.
class LaunchProcess {
 public:
  LaunchProcess(const LaunchStart& start, const std::filesystem::path& folder, int number);
  ~LaunchProcess();
  LaunchProcess(const LaunchProcess&) = delete;
  LaunchProcess& operator=(const LaunchProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;  // to `convoy` alone
  LaunchEnd wait(milliseconds patience = std::chrono::seconds(90));
  std::string output() const;  // written so far
  std::string errors() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
  std::filesystem::path output_file_, errors_file_;
};

// Has a folder (HERE in the environment of ranks), a folder for the launcher's temporary files, and
// a mark in the environment of every process that it starts, by which the process is found wherever
// it went.
class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest();
  ~LaunchTest() override;

  std::unique_ptr<LaunchProcess> start(LaunchStart what);
  LaunchEnd run(LaunchStart what);
  LaunchEnd run(std::vector<std::string> arguments);
  // Expects a refusal before anything ran: code 2, JSON on the last line, and every word in the
  // message.
  void expect_refused(std::vector<std::string> arguments, const std::vector<std::string>& words);
  // Returns the start of `convoy launch --nproc-per-node RANKS FLAGS sh -c SCRIPT`.
  static LaunchStart shell(int ranks, const std::string& script,
                           std::vector<std::string> flags = {});

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name) const;  // "" if there is no such file
  void write(const std::string& name, const std::string& text, bool executable = false) const;
  // Waits until the file has this many lines. Ranks append lines to report their progress. Returns
  // written by ranks
  bool wait_for_lines(const std::string& name, long lines) const;
  std::vector<pid_t> numbers(const std::string& name) const;  // numbers that ranks wrote

  // Returns the processes with this test's mark, except zombies and this process.
  std::vector<pid_t> survivors() const;
  // Succeeds if nothing remains after the time: no process, no temporary file, no claim on a port
  // of the file `ports`, and no listener on it.
  ::testing::AssertionResult nothing_left(milliseconds within = milliseconds(10'000)) const;

  TemporaryFolder folder_;

 private:
  std::filesystem::path temporary() const { return folder_ / "tmp"; }
  std::string what_is_left() const;

  std::string mark_;
  int num_started_ = 0;
};

std::string built_program();
bool is_alive(pid_t pid);  // false for a zombie
bool wait_until(const std::function<bool()>& condition, milliseconds patience);
bool is_root();

}  // namespace convoy::testing
