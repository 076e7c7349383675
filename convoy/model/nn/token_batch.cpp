// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::nn {

TokenBatch::TokenBatch(std::span<const int64_t> ids, std::span<const int64_t> positions,
                       std::vector<int64_t> row_starts, at::Device device) {
  device::Upload upload(device);
  *this = TokenBatch(ids, positions, std::move(row_starts), upload);
  upload.send();
}

TokenBatch::TokenBatch(std::span<const int64_t> ids, std::span<const int64_t> positions,
                       std::vector<int64_t> row_starts, device::Upload& upload)
    : token_ids_T_(upload.add(ids)),
      position_ids_T_(upload.add(positions)),
      rows_(std::move(row_starts), upload) {
  CONVOY_INVARIANT(
      ids.size() == positions.size() && static_cast<int64_t>(ids.size()) == rows_.num_tokens(),
      "{} ids, {} positions and rows of {} tokens", ids.size(), positions.size(),
      rows_.num_tokens());
  if (ids.empty()) return;
  const auto [lowest, highest] = std::minmax_element(ids.begin(), ids.end());
  lowest_id_ = *lowest;
  highest_id_ = *highest;
  last_position_ = *std::max_element(positions.begin(), positions.end());
}

}  // namespace convoy::nn
