// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

namespace convoy::data {
namespace {

struct Stream {
  std::vector<int> put;
  std::string error;
  int most_under_way = 0;
};

// Runs a stream over the items 0 to `count` - 1. The step named in `fails` throws at item `at`.
Stream run_stream(int count, int threads, const std::string& fails = "", int at = -1) {
  Stream result;
  int next = 0;
  std::atomic<int> under_way{0};
  std::atomic<int> most{0};
  const auto fail = [&](const std::string& step, int item) {
    if (step == fails && item == at) throw std::runtime_error(step + std::to_string(item));
  };
  const OrderedWork<int, int> steps{
      .pull = [&]() -> std::optional<int> {
        fail("pull", next);
        if (next == count) return std::nullopt;
        const int now = ++under_way;
        if (now > most) most = now;
        return next++;
      },
      .work =
          [&](int item) {
            if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
            fail("work", item);
            return item * 10;
          },
      .put =
          [&](int made) {
            --under_way;
            fail("put", made / 10);
            result.put.push_back(made);
          }};
  try {
    work_in_order(steps, threads);
  } catch (const std::runtime_error& error) {
    result.error = error.what();
  }
  result.most_under_way = most;
  return result;
}

TEST(OrderedWork, ResultsComeInTheOrderOfTheItems) {
  for (const int threads : {1, 2, 5}) {
    const Stream done = run_stream(500, threads);
    ASSERT_EQ(done.put.size(), 500u);
    for (int item = 0; item < 500; ++item)
      EXPECT_EQ(done.put[static_cast<size_t>(item)], item * 10);
    EXPECT_LE(done.most_under_way, 8 * threads);
  }
  EXPECT_TRUE(run_stream(0, 3).put.empty());
}

TEST(OrderedWork, AnErrorEndsTheStreamWhereItArose) {
  for (const char* step : {"pull", "work", "put"})
    for (const int threads : {1, 4})
      for (const int at : {0, 1, 63, 199}) {
        const Stream done = run_stream(200, threads, step, at);
        EXPECT_EQ(done.error, step + std::to_string(at));
        EXPECT_EQ(done.put.size(), static_cast<size_t>(at)) << step << " " << at;
      }
}

}  // namespace
}  // namespace convoy::data
