// SPDX-License-Identifier: Apache-2.0
//
// Runs of tasks that learn from rollouts: their problems, their texts, and random kills.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {

inline void write_problems(const std::filesystem::path& file, int64_t count) {
  std::string problems;
  for (int64_t row = 0; row < count; ++row)
    problems += fmt::format("{{\"problem\": \"What is {} + {}? \", \"answer\": \"{}\"}}\n", row,
                            2 * row, 3 * row);
  write_file_atomic(file, problems);
}

// The texts of all steps, by file.
inline std::map<std::string, std::string> rollouts_of(const TrainFixture& fixture,
                                                      const std::string& name) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(fixture.run_folder(name) / "rollouts"))
    files[entry.path().filename().string()] =
        entry.is_regular_file() ? read_file(entry.path()) : "a folder";
  return files;
}

inline void expect_same_rollouts(const TrainFixture& fixture, const std::string& wanted,
                                 const std::string& found) {
  expect_same_result(fixture, wanted, found);
  EXPECT_EQ(fixture.evaluation_losses(wanted), fixture.evaluation_losses(found));
  EXPECT_TRUE(rollouts_of(fixture, wanted) == rollouts_of(fixture, found));
}

// Kills the run up to six times at random moments within `whole`, and starts it again until it
// ends. Returns how often it was killed.
inline int64_t run_with_kills(const TrainFixture& fixture, const std::string& name,
                              const Settings& settings, std::chrono::microseconds whole) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int64_t kills = 0;
  for (bool killed = true; killed;) {
    TrainProcess process = fixture.start(name, settings);
    if (kills < 6) {
      std::uniform_int_distribution<int64_t> moment(0, whole.count());
      std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    } else {
      process.wait();
    }
    killed = process.running();
    if (killed) process.kill_everything();
    kills += killed ? 1 : 0;
    const Ended ended = process.wait();
    EXPECT_TRUE(ended.status == 0 || ended.status == 128 + SIGKILL)
        << "seed " << seed << ended.errors;
    if (::testing::Test::HasFailure()) break;
  }
  return kills;
}

}  // namespace convoy::testing
