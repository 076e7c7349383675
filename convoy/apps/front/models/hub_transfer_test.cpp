// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/models/hub_transfer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace convoy::apps {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

// Returns the lines of a transfer that has hashed and sent so many bytes.
std::string shown(int64_t hashed_bytes, int64_t sent_bytes) {
  ::setenv("CONVOY_PROGRESS", "lines", 1);
  ::testing::internal::CaptureStderr();
  const Context context{};
  run_transfer(context, "push", true, [&](const hub::StopTest&, hub::TransferProgress& progress) {
    for (const auto& [amount, bytes] :
         {std::pair<hub::TransferAmount&, int64_t>{progress.hashing, hashed_bytes},
          {progress, sent_bytes}}) {
      amount.total_files = amount.done_files = 3;
      amount.total_bytes = amount.done_bytes = bytes;
    }
  });
  ::unsetenv("CONVOY_PROGRESS");
  return ::testing::internal::GetCapturedStderr();
}

TEST(HubTransfer, ShowsTheHashingOfLargeFiles) {
  const std::string large = shown(2 * kGibibyte, kGibibyte);
  EXPECT_NE(large.find("hash: MiB 2048/2048"), std::string::npos) << large;
  EXPECT_NE(large.find("push: MiB 1024/1024"), std::string::npos) << large;
  EXPECT_EQ(shown(kGibibyte / 2, kGibibyte).find("hash"), std::string::npos);
}

}  // namespace
}  // namespace convoy::apps
