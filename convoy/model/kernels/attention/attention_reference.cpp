// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/attention/attention_reference.h"

#include <limits>

namespace convoy::kernels::reference {

at::Tensor row_attention(const at::Tensor& q_THE, const at::Tensor& k_SKE, const at::Tensor& v_SKE,
                         const AttentionConfig& config) {
  const int64_t queries = q_THE.size(0);
  const int64_t keys = k_SKE.size(0);
  const int64_t group = q_THE.size(1) / std::max<int64_t>(k_SKE.size(1), 1);
  at::Tensor k_HSE = k_SKE.repeat_interleave(group, 1).transpose(0, 1);
  at::Tensor v_HSE = v_SKE.repeat_interleave(group, 1).transpose(0, 1);
  at::Tensor scores_HTS = at::matmul(q_THE.transpose(0, 1), k_HSE.transpose(1, 2)) * config.scale;
  at::Tensor query_T1 = at::arange(keys - queries, keys, at::kLong).unsqueeze(1);
  at::Tensor key_1S = at::arange(keys, at::kLong).unsqueeze(0);
  at::Tensor hidden_TS = key_1S > query_T1;
  if (config.sliding_window > 0)
    hidden_TS = hidden_TS.logical_or(key_1S <= query_T1 - config.sliding_window);
  at::Tensor weights_HTS =
      scores_HTS.masked_fill(hidden_TS, -std::numeric_limits<double>::infinity()).softmax(-1);
  return at::matmul(weights_HTS, v_HSE).transpose(0, 1);
}

at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                            const at::Tensor& v_TKE, const std::vector<int64_t>& row_starts,
                            const AttentionConfig& config) {
  std::vector<at::Tensor> rows;
  for (size_t row = 0; row + 1 < row_starts.size(); ++row) {
    const int64_t begin = row_starts[row];
    const int64_t end = row_starts[row + 1];
    rows.push_back(row_attention(q_THE.slice(0, begin, end), k_TKE.slice(0, begin, end),
                                 v_TKE.slice(0, begin, end), config));
  }
  return rows.empty() ? at::empty_like(q_THE) : at::cat(rows, 0);
}

}  // namespace convoy::kernels::reference
