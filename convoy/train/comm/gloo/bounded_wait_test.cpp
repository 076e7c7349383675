// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/gloo/bounded_wait.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>

namespace convoy::comm {
namespace {

// Imitates a work of ProcessGroupGloo, which throws c10::Error if a wait exceeds its limit. The
// work may end while that exception is created.
class SlowWork : public c10d::Work {
 public:
  explicit SlowWork(bool ends_as_time_is_up, std::exception_ptr failure = nullptr)
      : ends_as_time_is_up_(ends_as_time_is_up), failure_(std::move(failure)) {}

  bool wait(std::chrono::milliseconds timeout) override {
    if (isCompleted()) return Work::wait(timeout);
    if (ends_as_time_is_up_) finish(failure_);
    TORCH_CHECK(false, "Operation timed out!");
  }

 private:
  bool ends_as_time_is_up_;
  std::exception_ptr failure_;
};

constexpr std::chrono::milliseconds kLimit{1};

TEST(BoundedWait, SaysThatACollectiveStillRuns) {
  SlowWork work(false);
  EXPECT_FALSE(done_within(work, kLimit));
}

TEST(BoundedWait, TakesTheEndOfACollectiveThatEndsAsTimeIsUp) {
  SlowWork work(true);
  EXPECT_TRUE(done_within(work, kLimit));
}

TEST(BoundedWait, ThrowsTheFailureOfACollectiveThatFailsAsTimeIsUp) {
  SlowWork work(true, std::make_exception_ptr(std::runtime_error("a peer is gone")));
  EXPECT_THROW(done_within(work, kLimit), std::runtime_error);
}

}  // namespace
}  // namespace convoy::comm
