// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/labelled_batch.h"

#include <numeric>

namespace convoy::train {

LabelledBatch assemble_batch(const data::TokenDataset& dataset, const std::vector<int64_t>& rows,
                             at::Device device) {
  std::vector<int64_t> row_starts = {0};
  for (const int64_t row : rows)
    row_starts.push_back(row_starts.back() + dataset.length_tokens(row));
  const auto num_tokens = static_cast<size_t>(row_starts.back());
  std::vector<int64_t> ids(num_tokens);
  std::vector<int64_t> positions(num_tokens);
  std::vector<int64_t> labels(num_tokens, kernels::kIgnoredLabel);
  std::vector<float> weights;  // empty: 1 for all
  for (size_t index = 0; index < rows.size(); ++index) {
    const auto start = static_cast<size_t>(row_starts[index]);
    const auto row_ids = dataset.ids(rows[index]);
    const auto supervised = dataset.supervised(rows[index]);
    std::copy(row_ids.begin(), row_ids.end(), ids.begin() + static_cast<ptrdiff_t>(start));
    std::iota(positions.begin() + static_cast<ptrdiff_t>(start),
              positions.begin() + static_cast<ptrdiff_t>(start + row_ids.size()), int64_t{0});
    for (size_t token = 1; token < row_ids.size(); ++token)
      if (supervised[token] != 0) labels[start + token - 1] = row_ids[token];
    const auto row_weights = dataset.weights(rows[index]);
    if (row_weights.empty()) continue;
    weights.resize(num_tokens, 1.0F);
    std::copy(row_weights.begin() + 1, row_weights.end(),
              weights.begin() + static_cast<ptrdiff_t>(start));
  }
  return {nn::TokenBatch(ids, positions, std::move(row_starts), device),
          kernels::LabelledTokens(labels, device, weights)};
}

LabelledBatch idle_batch(at::Device device) {
  const std::vector<int64_t> zero = {0};
  return {nn::TokenBatch(zero, zero, {0, 1}, device),
          kernels::LabelledTokens(std::vector<int64_t>{kernels::kIgnoredLabel}, device)};
}

}  // namespace convoy::train
