// SPDX-License-Identifier: Apache-2.0
//
// Drives the real `convoy sweep` as a shell would: starts it, signals or kills it and its workers,
// and looks for anything that it left behind. Use it from one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/temporary_folder.h"

namespace convoy::testing {

struct SweepEnd {
  int status = -1;  // as in a shell: 128 + n for signal n
  std::string output;
  std::string errors;

  std::string last_line() const;  // the last line of stderr
};

// A running `convoy sweep`, whose stdout and stderr go to files.
class SweepProcess {
 public:
  // `command` is argv, beginning with the path of the program.
  SweepProcess(std::vector<std::string> command, const std::filesystem::path& folder, int number,
               const std::string& mark);
  ~SweepProcess();
  SweepProcess(const SweepProcess&) = delete;
  SweepProcess& operator=(const SweepProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  std::vector<pid_t> workers() const;
  std::vector<pid_t> guards() const;
  // Waits for the end. Kills the process after `patience`.
  SweepEnd wait(std::chrono::milliseconds patience = std::chrono::seconds(180));

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::filesystem::path output_file_, errors_file_;
};

// Has a folder, and a mark in the environment of every process that it starts.
class SweepTest : public ::testing::Test {
 protected:
  SweepTest();
  ~SweepTest() override;

  std::unique_ptr<SweepProcess> start(const std::vector<std::string>& arguments);
  SweepEnd run(const std::vector<std::string>& arguments);
  // Runs `convoy` in a mount namespace of its own, after the shell script `mounts`. The status is
  // 77 if that is not allowed.
  SweepEnd run_with_mounts(const std::string& mounts, const std::vector<std::string>& arguments);
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string text(const std::string& name) const { return path(name).string(); }
  // Returns the names of the files in `folder` that begin with `beginning`.
  std::vector<std::string> files_beginning(const std::string& folder,
                                           const std::string& beginning) const;
  // Returns the text of the only file in `folder` whose name begins with `beginning`.
  std::string file_beginning(const std::string& folder, const std::string& beginning) const;
  void write(const std::string& name, const std::string& content) const;
  // Returns the processes of this test whose command line begins with `words`. Words within the
  // line do not count, because a runner's command line contains the command of its programs.
  std::vector<pid_t> processes(const std::string& words) const;
  // Waits until `condition` holds. Returns false after a minute.
  static bool wait_until(const std::function<bool()>& condition);
  // Succeeds if all processes of this test end soon.
  ::testing::AssertionResult nothing_left() const;

  TemporaryFolder folder_;

 private:
  std::string mark_;
  int num_started_ = 0;
};

}  // namespace convoy::testing
