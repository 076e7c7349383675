// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/sampler/sampler.h"

#include "convoy/base/error.h"
#include "convoy/kernels/ops/op_table.h"

namespace convoy::kernels {

at::Tensor sample_tokens(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                         const at::Tensor& uniform_R) {
  CONVOY_INVARIANT(
      logits_RV.scalar_type() == at::kFloat || logits_RV.scalar_type() == at::kBFloat16,
      "sample_tokens wants fp32 or bf16, found {}", c10::toString(logits_RV.scalar_type()));
  CONVOY_INVARIANT(logits_RV.dim() == 2 && logits_RV.stride(1) == 1,
                   "sample_tokens wants [R, V] logits with contiguous rows");
  CONVOY_INVARIANT(num_ids > 0 && num_ids <= logits_RV.size(1),
                   "sample_tokens wants 1 to {} ids, found {}", logits_RV.size(1), num_ids);
  CONVOY_INVARIANT(uniform_R.scalar_type() == at::kDouble && uniform_R.is_contiguous() &&
                       uniform_R.sizes() == at::IntArrayRef{logits_RV.size(0)},
                   "sample_tokens wants one fp64 number per row");
  CONVOY_INVARIANT(rule.temperature >= 0 && rule.top_k >= 0 && rule.top_p > 0,
                   "sample_tokens wants temperature and top_k from 0, top_p above 0");
  const at::NoGradGuard no_grad;
  return op_table(logits_RV).sampler.sample(logits_RV, num_ids, rule, uniform_R);
}

}  // namespace convoy::kernels
