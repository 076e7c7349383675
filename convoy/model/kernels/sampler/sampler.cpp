// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/sampler.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/op_table.h"

namespace convoy::kernels {
namespace {

void check_row(const SamplingRow& row, int64_t num_ids) {
  const SamplingRule& rule = row.rule;
  CONVOY_INVARIANT(rule.temperature >= 0 && rule.top_k >= 0 && rule.top_p > 0 && rule.min_p >= 0 &&
                       rule.min_p <= 1 && rule.repetition_penalty > 0,
                   "sample_tokens needs temperature and top_k from 0, top_p and "
                   "repetition_penalty above 0, min_p from 0 to 1, found {}, {}, {}, {}, {}",
                   rule.temperature, rule.top_k, rule.top_p, rule.repetition_penalty, rule.min_p);
  CONVOY_INVARIANT(row.uniform >= 0 && row.uniform < 1,
                   "sample_tokens needs a number from 0 to below 1, found {}", row.uniform);
  CONVOY_INVARIANT(row.num_likeliest >= 0 && row.num_likeliest <= num_ids,
                   "sample_tokens needs 0 to {} likeliest ids, found {}", num_ids,
                   row.num_likeliest);
  if (rule.repetition_penalty == 1.0) return;
  CONVOY_INVARIANT(
      std::all_of(row.seen_ids.begin(), row.seen_ids.end(), [](int32_t id) { return id >= 0; }),
      "sample_tokens needs seen ids from 0");
}

}  // namespace

std::vector<SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                        std::span<const SamplingRow> rows) {
  CONVOY_INVARIANT(
      logits_RV.scalar_type() == at::kFloat || logits_RV.scalar_type() == at::kBFloat16,
      "sample_tokens needs fp32 or bf16, found {}", c10::toString(logits_RV.scalar_type()));
  CONVOY_INVARIANT(logits_RV.dim() == 2 && logits_RV.stride(1) == 1,
                   "sample_tokens needs [R, V] logits with contiguous rows");
  CONVOY_INVARIANT(num_ids > 0 && num_ids <= logits_RV.size(1),
                   "sample_tokens needs 1 to {} ids, found {}", logits_RV.size(1), num_ids);
  CONVOY_INVARIANT(static_cast<int64_t>(rows.size()) == logits_RV.size(0),
                   "sample_tokens needs {} rows, found {}", logits_RV.size(0), rows.size());
  for (const SamplingRow& row : rows) check_row(row, num_ids);
  if (rows.empty()) return {};
  const at::NoGradGuard no_grad;
  return op_table(logits_RV).sampler.sample(logits_RV, num_ids, rows);
}

}  // namespace convoy::kernels
