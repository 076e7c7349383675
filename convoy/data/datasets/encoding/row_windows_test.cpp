// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/row_windows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace convoy::data {
namespace {

struct Window {
  std::vector<int32_t> ids;
  std::vector<uint8_t> mask;
};

std::vector<Window> windows_of(const std::vector<int32_t>& ids,
                               const std::vector<uint8_t>& supervised, int64_t max_tokens) {
  std::vector<Window> windows;
  cut_windows(ids, supervised, {}, max_tokens, [&](auto window_ids, auto mask, auto) {
    windows.push_back({{window_ids.begin(), window_ids.end()}, {mask.begin(), mask.end()}});
  });
  return windows;
}

TEST(RowWindows, EveryTokenIsATargetOnceBehindTheTokenBeforeIt) {
  for (int tokens = 2; tokens < 40; ++tokens)
    for (int64_t length = 2; length < 12; ++length) {
      std::vector<int32_t> ids(static_cast<size_t>(tokens));
      std::iota(ids.begin(), ids.end(), 0);
      std::vector<uint8_t> supervised(ids.size(), 1);
      supervised[0] = 0;
      std::vector<int32_t> targets;
      for (const Window& window : windows_of(ids, supervised, length)) {
        ASSERT_LE(std::ssize(window.ids), length);
        ASSERT_EQ(window.mask[0], 0);
        for (size_t at = 1; at < window.ids.size(); ++at) {
          ASSERT_EQ(window.ids[at], window.ids[at - 1] + 1);
          if (window.mask[at] != 0) targets.push_back(window.ids[at]);
        }
      }
      EXPECT_EQ(targets, std::vector<int32_t>(ids.begin() + 1, ids.end()))
          << tokens << " tokens in windows of " << length;
    }
}

TEST(RowWindows, LeavesOutWindowsWithNothingToLearn) {
  const std::vector<Window> windows = windows_of({1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 0, 1, 0}, 3);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].ids, (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(windows[0].mask, (std::vector<uint8_t>{0, 1, 0}));
}

TEST(RowWindows, WeightsGoWithTheirTokens) {
  std::vector<std::vector<float>> weights;
  cut_windows(std::vector<int32_t>{1, 2, 3, 4, 5}, std::vector<uint8_t>{0, 1, 1, 1, 1},
              std::vector<float>{1, 2, 3, 4, 5}, 3, [&](auto, auto, auto of_window) {
                weights.emplace_back(of_window.begin(), of_window.end());
              });
  EXPECT_EQ(weights, (std::vector<std::vector<float>>{{1, 2, 3}, {3, 4, 5}}));
}

TEST(RowWindows, ARowThatFitsIsOneWindow) {
  const std::vector<Window> windows = windows_of({1, 2, 3}, {0, 0, 1}, 3);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].ids, (std::vector<int32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace convoy::data
