// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/step_flops.h"

#include <algorithm>

namespace convoy::sizing {
namespace {

constexpr double kFlopsPerElement = 2;  // for each element and token

// Pairs of queries and keys: each token sees itself and the tokens before it, at most `window` with
// itself.
double pairs(int64_t tokens, int64_t window) {
  const auto all = static_cast<double>(tokens);
  if (window <= 0 || tokens <= window) return all * (all + 1) / 2;
  const auto seen = static_cast<double>(window);
  return seen * (seen + 1) / 2 + (all - seen) * seen;
}

}  // namespace

int64_t recurrent_elements(const architecture::DeltaNetSpec& sizes) {
  constexpr int64_t kStateProducts = 3;
  return sizes.conv_channels() * sizes.conv_width +
         kStateProducts * sizes.num_value_heads * sizes.key_head_dim * sizes.value_head_dim;
}

double step_flops(const ProductWeights& weights, const AttentionShape& attention,
                  std::span<const int64_t> row_tokens, int64_t supervised_tokens) {
  // Each weight has one product in forward and one for the gradient of the input. A trained weight
  // has one more, for its own gradient.
  const double per_token =
      kFlopsPerElement * static_cast<double>(2 * weights.blocks + weights.trained_blocks +
                                             3 * weights.adapters - weights.without_input_gradient);
  const double per_label =
      kFlopsPerElement * static_cast<double>(weights.head * (weights.trains_head ? 3 : 2));
  double tokens = 0;
  double seen = 0;  // features of a query times the keys that it sees
  for (const int64_t row : row_tokens) {
    tokens += static_cast<double>(row);
    for (size_t layer = 0; layer < attention.windows.size(); ++layer) {
      const int64_t width = attention.widths.empty() ? attention.width : attention.widths[layer];
      seen += static_cast<double>(width) * pairs(row, attention.windows[layer]);
    }
  }
  // Scores and the sum of values: two products forward, and two gradients of each.
  constexpr double kAttentionProducts = 6;
  constexpr double kRecurrentProducts = 3;  // forward, and two gradients
  const double recurrent =
      kRecurrentProducts * kFlopsPerElement * static_cast<double>(attention.recurrent) * tokens;
  return per_token * tokens + recurrent + per_label * static_cast<double>(supervised_tokens) +
         kAttentionProducts * kFlopsPerElement * seen;
}

}  // namespace convoy::sizing
