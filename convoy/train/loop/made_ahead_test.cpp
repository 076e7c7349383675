// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/made_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>

namespace convoy::train {
namespace {

using namespace std::chrono_literals;

TEST(MadeAhead, ItemsComeInOrder) {
  MadeAhead<int64_t> squares(50, [](int64_t index) { return index * index; });
  for (int64_t index = 0; index < 50; ++index) EXPECT_EQ(squares.take(), index * index);
  EXPECT_THROW(squares.take(), StateError);
}

TEST(MadeAhead, OfNothingNothingIsMade) {
  MadeAhead<int> none(0, [](int64_t) -> int { throw std::runtime_error("called"); });
  EXPECT_THROW(none.take(), StateError);
}

TEST(MadeAhead, TheNextAreMadeBeforeTheyAreWantedAndNoMore) {
  constexpr auto kMost = static_cast<int64_t>(MadeAhead<int64_t>::kMostWaiting);
  std::atomic<int64_t> made = 0;
  MadeAhead<int64_t> items(100, [&](int64_t index) {
    ++made;
    return index;
  });
  for (int64_t taken = 0; taken < 20; ++taken) {
    while (made < taken + kMost) std::this_thread::yield();  // hangs if nothing is made ahead
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(made, taken + kMost);
    items.take();
  }
}

TEST(MadeAhead, WhatMakingThrowsComesOutWhereTheItemIsWanted) {
  MadeAhead<int64_t> items(9, [](int64_t index) {
    if (index == 3) throw std::out_of_range("the fourth");
    return index;
  });
  for (int64_t index = 0; index < 3; ++index) EXPECT_EQ(items.take(), index);
  for (int again = 0; again < 2; ++again) {
    try {
      items.take();
      ADD_FAILURE() << "an item after the failure";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "the fourth");
    }
  }
}

TEST(MadeAhead, WhatWasNotTakenIsDropped) {
  const auto token = std::make_shared<int>();
  for (const int taken : {0, 1, 5}) {
    MadeAhead<std::shared_ptr<int>> items(9, [&](int64_t) { return token; });
    for (int number = 0; number < taken; ++number) items.take();
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(MadeAhead, SignalsAreLeftToTheOtherThreads) {
  MadeAhead<bool> blocked(1, [](int64_t) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGTERM) == 1;
  });
  EXPECT_TRUE(blocked.take());
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

}  // namespace
}  // namespace convoy::train
