// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/allowed_logits.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace convoy::kernels {
namespace {

constexpr int64_t kWordBits = 32;

}  // namespace

void add_allowed_tables(std::span<const SamplingRow> rows, device::Upload& upload,
                        SamplingTables& tables) {
  size_t num_words = 0;
  for (const SamplingRow& row : rows) num_words = std::max(num_words, row.allowed.size());
  if (num_words == 0) return;
  std::vector<int64_t> bound;
  std::vector<int64_t> words;  // as the other tables; a tensor of uint32 knows few operations
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].allowed.empty()) continue;
    bound.push_back(static_cast<int64_t>(row));
    words.insert(words.end(), rows[row].allowed.begin(), rows[row].allowed.end());
    words.resize(bound.size() * num_words, 0);
  }
  tables.bound_rows_B = upload.add(bound);
  tables.allowed_BW = upload.add(words).view({-1, static_cast<int64_t>(num_words)});
}

at::Tensor allowed_logits(const at::Tensor& logits_RV, const SamplingTables& tables) {
  if (!tables.bound_rows_B.defined()) return logits_RV;
  const int64_t num_logits = logits_RV.size(1);
  const at::Tensor bits = at::arange(kWordBits, tables.allowed_BW.options());
  at::Tensor allowed_BV =
      tables.allowed_BW.unsqueeze(2).bitwise_right_shift(bits).bitwise_and(1).flatten(1);
  const int64_t missing = num_logits - allowed_BV.size(1);
  if (missing > 0) allowed_BV = at::constant_pad_nd(allowed_BV, {0, missing}, 0);
  const at::Tensor bound_BV = logits_RV.index_select(0, tables.bound_rows_B)
                                  .masked_fill(allowed_BV.narrow(1, 0, num_logits).eq(0),
                                               -std::numeric_limits<float>::infinity());
  return logits_RV.index_copy(0, tables.bound_rows_B, bound_BV);
}

}  // namespace convoy::kernels
