// SPDX-License-Identifier: Apache-2.0
//
// Drives row_probe as a shell would: starts it, kills it and its workers, and reads its files. Use
// it from one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "files/temporary_folder.h"

namespace convoy::testing {

struct ProbeEnd {
  int status = -1;  // as in a shell: 128 + n for signal n
  std::string output = {};
  std::string errors = {};
  nlohmann::json report() const { return nlohmann::json::parse(output); }
};

// Runs `row_probe coordinate` with these words. The destructor kills the process.
class ProbeRun {
 public:
  ProbeRun(const std::vector<std::string>& words, const std::filesystem::path& scratch);
  ~ProbeRun();
  ProbeRun(const ProbeRun&) = delete;
  ProbeRun& operator=(const ProbeRun&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  std::vector<pid_t> workers() const;
  ProbeEnd wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::filesystem::path output_, errors_;
};

// Has the folders of runs. A run's store is "sqlite" or "postgres" (a group of its own at the
// server $CONVOY_TEST_POSTGRES).
class ProbeTest : public ::testing::Test {
 protected:
  std::vector<std::string> words(const std::string& folder, int64_t workers,
                                 const std::vector<std::string>& more) const;
  ProbeEnd run(const std::vector<std::string>& words);
  std::unique_ptr<ProbeRun> start(const std::vector<std::string>& words);
  std::string output(const std::string& folder) const;
  int64_t tokens_made(const std::string& folder) const;

  TemporaryFolder scratch_;
  int started_ = 0;
};

}  // namespace convoy::testing
