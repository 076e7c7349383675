// SPDX-License-Identifier: Apache-2.0
//
// By sorting each row: a GPU does that fast.
#include "convoy/kernels/sampler/sampler_ops.h"

namespace convoy::kernels {
namespace {

// The first place of each row whose cumulative weight lies above its share of the whole.
at::Tensor place_of(const at::Tensor& weights_RV, const at::Tensor& uniform_R) {
  const at::Tensor sums = weights_RV.cumsum(1);
  const at::Tensor wanted = uniform_R.unsqueeze(1) * sums.narrow(1, sums.size(1) - 1, 1);
  const at::Tensor last = weights_RV.gt(0).sum(1).sub_(1);
  return at::minimum(sums.le(wanted).sum(1), last).clamp_min_(0);
}

at::Tensor pick_by_rank(const at::Tensor& scaled_RV, const SamplingRule& rule,
                        const at::Tensor& uniform_R) {
  auto [sorted, order] = scaled_RV.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  const int64_t kept = rule.top_k > 0 ? std::min(rule.top_k, sorted.size(1)) : sorted.size(1);
  at::Tensor weights = sorted.narrow(1, 0, kept).softmax(1);
  const at::Tensor before = weights.cumsum(1).sub_(weights);
  // A share that is reached but for the rounding of the sums is reached.
  weights = weights.masked_fill(before.ge(rule.top_p * (1 - 1e-12)), 0);
  return order.gather(1, place_of(weights, uniform_R).unsqueeze(1)).squeeze(1);
}

at::Tensor pick_by_id(const at::Tensor& scaled_RV, const at::Tensor& uniform_R) {
  const at::Tensor sums = scaled_RV.softmax(1).cumsum(1);
  const at::Tensor wanted = uniform_R.unsqueeze(1) * sums.narrow(1, sums.size(1) - 1, 1);
  return sums.le(wanted).sum(1).clamp_max_(sums.size(1) - 1);
}

at::Tensor sample(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                  const at::Tensor& uniform_R) {
  const at::Tensor values = logits_RV.narrow(1, 0, num_ids).to(at::kFloat);
  const at::Tensor usable = values.amax({1}).isfinite();
  at::Tensor ids;
  if (rule.temperature == 0) {
    ids = values.argmax(1);
  } else {
    const at::Tensor scaled = values.to(at::kDouble).div_(rule.temperature);
    const bool leaves_out = (rule.top_k > 0 && rule.top_k < num_ids) || rule.top_p < 1;
    ids = leaves_out ? pick_by_rank(scaled, rule, uniform_R) : pick_by_id(scaled, uniform_R);
  }
  return ids.masked_fill(usable.logical_not(), kNoToken);
}

}  // namespace

const SamplerOps kSamplerAten = {sample};

}  // namespace convoy::kernels
