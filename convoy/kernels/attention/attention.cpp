// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/attention/attention.h"

#include "convoy/kernels/attention/attention_reference.h"

namespace convoy::kernels {

at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const std::vector<int64_t>& row_starts, const AttentionConfig& config) {
  return reference::packed_attention(q_THE, k_TKE, v_TKE, row_starts, config);
}

at::Tensor cached_attention(const at::Tensor& q_THE, const std::vector<CachedRow>& cached,
                            const std::vector<int64_t>& row_starts, const AttentionConfig& config) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  for (size_t row = 0; row + 1 < row_starts.size(); ++row) {
    rows.push_back(reference::row_attention(q_THE.slice(0, row_starts[row], row_starts[row + 1]), cached[row].k_SKE,
                                            cached[row].v_SKE, config));
  }
  return rows.empty() ? at::empty_like(q_THE) : at::cat(rows, 0);
}

}  // namespace convoy::kernels
