// SPDX-License-Identifier: Apache-2.0
//
// Stores that can not be used, and two runners at one.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepStore : public SweepTest {};

const std::vector<std::string> kSmall = {"ssm", "--num-seeds",       "2",      "--student-dims",
                                         "20",  "--gnc-num-samples", "100000", "--workers",
                                         "2"};

std::vector<std::string> small(const std::vector<std::string>& more) {
  std::vector<std::string> words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(SweepStore, AFolderThatMayNotBeWrittenIsSaidAtOnce) {
  const SweepEnd end = run_with_mounts("mkdir -p locked && mount -t tmpfs -o ro none locked",
                                       small({"--results-dir", "locked"}));
  if (end.status == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_EQ(json::parse(end.last_line())["kind"], "io") << end.errors;
  EXPECT_TRUE(end.output.empty()) << end.output;
}

TEST_F(SweepStore, AFullDiskEndsTheRunWithoutANumber) {
  const SweepEnd end = run_with_mounts("mkdir -p full && mount -t tmpfs -o size=96k none full",
                                       small({"--results-dir", "full"}));
  if (end.status == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_EQ(json::parse(end.last_line())["kind"], "io") << end.errors;
  EXPECT_TRUE(end.output.empty()) << end.output;
}

TEST_F(SweepStore, AFlippedByteIsNoResult) {
  ASSERT_EQ(run(small({})).status, 0);
  std::string bytes;
  {
    std::ifstream file(path("results/sweep.db"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = bytes.find("\"accepted\":");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 12] = bytes[at + 12] == '7' ? '8' : '7';
  write("results/sweep.db", bytes);
  const SweepEnd end = run({"show"});
  EXPECT_EQ(end.status, 10) << end.errors;
  EXPECT_NE(end.errors.find("sweep.db"), std::string::npos) << end.errors;
}

TEST_F(SweepStore, TwoRunnersAtOnceShareTheWork) {
  const std::vector<std::string> command = {
      "ssm",     "--num-seeds", "4", "--student-dims", "40", "60", "--gnc-num-samples",
      "4000000", "--workers",   "2", "--json"};
  auto left = start(command);
  auto right = start(command);
  const SweepEnd left_end = left->wait(), right_end = right->wait();
  EXPECT_EQ(left_end.status, 0) << left_end.errors;
  EXPECT_EQ(right_end.status, 0) << right_end.errors;
  const json left_rows = json::parse(left_end.output), right_rows = json::parse(right_end.output);
  ASSERT_EQ(left_rows.size(), 8u);
  for (size_t row = 0; row < left_rows.size(); ++row) {
    EXPECT_EQ(left_rows[row]["guesses"], 4'000'000);
    EXPECT_EQ(left_rows[row]["value"], right_rows[row]["value"]);
  }
}

}  // namespace
}  // namespace convoy::testing
