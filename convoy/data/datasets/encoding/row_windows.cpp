// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/row_windows.h"

#include <algorithm>
#include <vector>

namespace convoy::data {

void cut_windows(std::span<const int32_t> ids, std::span<const uint8_t> supervised,
                 std::span<const float> weights, int64_t max_tokens, const TakeWindow& take) {
  const auto length = static_cast<size_t>(max_tokens);
  std::vector<uint8_t> mask;
  for (size_t begin = 0;; begin += length - 1) {
    const size_t tokens = std::min(length, ids.size() - begin);
    const auto flags = supervised.subspan(begin, tokens);
    mask.assign(flags.begin(), flags.end());
    if (!mask.empty()) mask[0] = 0;
    if (std::any_of(mask.begin(), mask.end(), [](uint8_t flag) { return flag != 0; }))
      take(ids.subspan(begin, tokens), mask,
           weights.empty() ? weights : weights.subspan(begin, tokens));
    if (begin + tokens == ids.size()) return;
  }
}

}  // namespace convoy::data
