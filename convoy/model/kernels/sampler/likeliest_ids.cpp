// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/likeliest_ids.h"

#include <algorithm>

namespace convoy::kernels {

void add_likeliest_tables(std::span<const SamplingRow> rows, device::Upload& upload,
                          SamplingTables& tables) {
  std::vector<int64_t> asking;
  std::vector<int64_t> counts;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].num_likeliest == 0) continue;
    asking.push_back(static_cast<int64_t>(row));
    counts.push_back(rows[row].num_likeliest);
  }
  if (asking.empty()) return;
  tables.most_likeliest = *std::max_element(counts.begin(), counts.end());
  tables.asking_rows_A = upload.add(asking);
  tables.num_likeliest_A1 = upload.add(counts).view({-1, 1});
}

// People look at the most likely ids, so few rows ask, and sorting these rows is fast enough. A
// stable sort prefers the lower of equal ids.
at::Tensor with_likeliest(const at::Tensor& sampled_R2, const at::Tensor& logits_RV,
                          int64_t num_ids, const SamplingTables& tables) {
  const int64_t most = tables.most_likeliest;
  if (most == 0) return sampled_R2;
  const at::Tensor logprobs_AV = logits_RV.index_select(0, tables.asking_rows_A)
                                     .to(at::kFloat)
                                     .log_softmax(1)
                                     .narrow(1, 0, num_ids);
  const auto [sorted_AV, order_AV] =
      logprobs_AV.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  const at::Tensor sorted_AK = sorted_AV.narrow(1, 0, most).contiguous();
  const at::Tensor rank_K = at::arange(most, order_AV.options());
  const at::Tensor is_none_AK =
      sorted_AK.isfinite().logical_not().logical_or(rank_K.ge(tables.num_likeliest_A1));
  const at::Tensor ids_AK = order_AV.narrow(1, 0, most).masked_fill(is_none_AK, kNoToken);
  const at::Tensor pairs_AP =
      at::stack({ids_AK.to(at::kInt), sorted_AK.view(at::kInt)}, 2).flatten(1);
  const at::Tensor none_RP =
      at::full({sampled_R2.size(0), 2 * most}, kNoToken, sampled_R2.options());
  return at::cat({sampled_R2, none_RP.index_copy(0, tables.asking_rows_A, pairs_AP)}, 1);
}

}  // namespace convoy::kernels
