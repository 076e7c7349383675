// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/server_wait.h"

#include <gtest/gtest.h>

namespace convoy::sweep {
namespace {

using namespace std::chrono_literals;

TEST(ServerWait, SaysItsLimitAndWhatIsLeft) {
  EXPECT_EQ(server_wait_text(10min), "waiting for it, 10 min at most, 10 min more");
  EXPECT_EQ(server_wait_text(539'900ms), "waiting for it, 10 min at most, 9 min more");
  EXPECT_EQ(server_wait_text(75s), "waiting for it, 10 min at most, 1 min 15 s more");
  EXPECT_EQ(server_wait_text(400ms), "waiting for it, 10 min at most, 0 s more");
}

}  // namespace
}  // namespace convoy::sweep
