// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/token_batch.h"

#include <numeric>

#include "convoy/kernels/cross_entropy/linear_cross_entropy.h"

namespace convoy::train {

LabelledBatch assemble_batch(const data::TokenDataset& dataset, const std::vector<int64_t>& rows) {
  LabelledBatch batch;
  batch.tokens.row_starts.push_back(0);
  for (const int64_t row : rows)
    batch.tokens.row_starts.push_back(batch.tokens.row_starts.back() + dataset.length_tokens(row));
  const int64_t num_tokens = batch.num_tokens();
  batch.tokens.token_ids_T = at::empty({num_tokens}, at::kLong);
  batch.tokens.position_ids_T = at::empty({num_tokens}, at::kLong);
  batch.labels_T = at::full({num_tokens}, kernels::kIgnoredLabel, at::kLong);
  int64_t* ids = batch.tokens.token_ids_T.mutable_data_ptr<int64_t>();
  int64_t* positions = batch.tokens.position_ids_T.mutable_data_ptr<int64_t>();
  int64_t* labels = batch.labels_T.mutable_data_ptr<int64_t>();
  for (size_t index = 0; index < rows.size(); ++index) {
    const int64_t start = batch.tokens.row_starts[index];
    const auto row_ids = dataset.ids(rows[index]);
    const auto supervised = dataset.supervised(rows[index]);
    std::copy(row_ids.begin(), row_ids.end(), ids + start);
    std::iota(positions + start, positions + start + static_cast<int64_t>(row_ids.size()),
              int64_t{0});
    for (size_t token = 1; token < row_ids.size(); ++token) {
      if (supervised[token] == 0) continue;
      labels[start + static_cast<int64_t>(token) - 1] = row_ids[token];
      ++batch.supervised_tokens;
    }
  }
  return batch;
}

}  // namespace convoy::train
