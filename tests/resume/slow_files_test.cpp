// SPDX-License-Identifier: Apache-2.0
//
// A rank with slow files may delay the others for longer than the time limit of a collective,
// without a failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "resume/train_process.h"

namespace convoy::testing {
namespace {

// Rows are read before the ranks join their group; a checkpoint and the result are written
// afterwards.
TEST(SlowFiles, ReadingSavingAndExportingMayTakeLongerThanACollective) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "no library may come before that of the sanitizer";
#endif
  const TrainFixture fixture;
  const std::vector<std::string> settings = {"--nproc", "2", "train.epochs=1", "train.save_steps=2",
                                             "parallel.timeout_s=4"};
  ASSERT_EQ(fixture.run("quick", settings).status, 0);
  ::setenv("LD_PRELOAD", fmt::format("{}/libslow_files.so", std::getenv("CONVOY_BIN_DIR")).c_str(),
           1);
  ::setenv("SLOW_SECONDS", "6", 1);
  ::setenv("SLOW_FILES", "rows.jsonl:step-00000002:/slow/adapter", 1);
  const Ended ended = fixture.run("slow", settings);
  for (const char* name : {"LD_PRELOAD", "SLOW_SECONDS", "SLOW_FILES"}) ::unsetenv(name);
  EXPECT_EQ(ended.status, 0) << ended.errors;
  for (const char* what : {"slow: rows.jsonl", "slow: step-00000002", "slow: /slow/adapter"})
    EXPECT_NE(ended.errors.find(what), std::string::npos) << what << ended.errors;
  expect_same_result(fixture, "quick", "slow");
}

}  // namespace
}  // namespace convoy::testing
