// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/step_flops.h"

#include <gtest/gtest.h>

#include <array>

namespace convoy::sizing {
namespace {

constexpr std::array<int64_t, 2> kRows = {3, 5};

TEST(StepFlops, FullTrainingTakesThreeProductsOfEachWeight) {
  const ProductWeights weights{
      .blocks = 100, .trained_blocks = 100, .head = 10, .trains_head = true};
  EXPECT_EQ(step_flops(weights, {}, kRows, 4), 2.0 * 3 * 100 * 8 + 2.0 * 3 * 10 * 4);
}

TEST(StepFlops, FrozenWeightsHaveNoGradientOfTheirOwn) {
  const ProductWeights weights{.blocks = 100, .adapters = 7, .head = 10};
  EXPECT_EQ(step_flops(weights, {}, kRows, 4),
            (2.0 * 2 * 100 + 2.0 * 3 * 7) * 8 + 2.0 * 2 * 10 * 4);
  ProductWeights first = weights;
  first.without_input_gradient = 30;
  EXPECT_EQ(step_flops(weights, {}, kRows, 4) - step_flops(first, {}, kRows, 4), 2.0 * 30 * 8);
}

TEST(StepFlops, AttentionSeesWhatLiesBeforeInItsRow) {
  const AttentionShape attention{.width = 16, .windows = {0, 2}};
  // Rows of 3 and 5 tokens have 6 and 15 pairs, and within a window of two tokens 5 and 9 pairs.
  EXPECT_EQ(step_flops({}, attention, kRows, 4), 12.0 * 16 * (6 + 15 + 5 + 9));
  const AttentionShape of_two_widths{.windows = {0, 2}, .widths = {24, 8}};
  EXPECT_EQ(step_flops({}, of_two_widths, kRows, 4), 12.0 * (24 * (6 + 15) + 8 * (5 + 9)));
}

TEST(StepFlops, RecurrencesTakeThreeProductsOfTheirStateForEachToken) {
  const architecture::DeltaNetSpec sizes{.num_key_heads = 2,
                                         .num_value_heads = 4,
                                         .key_head_dim = 3,
                                         .value_head_dim = 5,
                                         .conv_width = 4};
  EXPECT_EQ(recurrent_elements(sizes), (2 * 2 * 3 + 4 * 5) * 4 + 3 * 4 * 3 * 5);
  EXPECT_EQ(step_flops({}, {.recurrent = 100}, kRows, 4), 2.0 * 3 * 100 * 8);
}

}  // namespace
}  // namespace convoy::sizing
