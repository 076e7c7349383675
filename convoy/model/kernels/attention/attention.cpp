// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/attention/attention.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/attention/attention_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
namespace {

at::Tensor with_contiguous_features(const at::Tensor& x) {
  return x.stride(-1) == 1 ? x : x.contiguous();
}

void check_shapes(const at::Tensor& q_THE, const at::Tensor& k_SKE, const at::Tensor& v_SKE) {
  CONVOY_INVARIANT(q_THE.dim() == 3 && k_SKE.dim() == 3 && v_SKE.sizes() == k_SKE.sizes(),
                   "attention needs [T, H, E] queries and [S, K, E] keys and values");
  CONVOY_INVARIANT(
      k_SKE.size(1) > 0 && q_THE.size(1) % k_SKE.size(1) == 0 && q_THE.size(2) == k_SKE.size(2),
      "attention needs query heads that are a multiple of key heads, found {} and {}",
      q_THE.size(1), k_SKE.size(1));
  CONVOY_INVARIANT(
      q_THE.scalar_type() == k_SKE.scalar_type() && q_THE.scalar_type() == v_SKE.scalar_type(),
      "attention needs one dtype");
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                            const at::Tensor& v_TKE, const RowIndex& rows,
                            const AttentionConfig& config) {
  check_shapes(q_THE, k_TKE, v_TKE);
  CONVOY_INVARIANT(rows.num_tokens() == q_THE.size(0) && k_TKE.size(0) == q_THE.size(0),
                   "attention needs rows of the {} tokens, found {}", q_THE.size(0),
                   rows.num_tokens());
  const at::Tensor q = with_contiguous_features(q_THE);
  const at::Tensor k = with_contiguous_features(k_TKE);
  const at::Tensor v = with_contiguous_features(v_TKE);
  const bool records = records_gradient({q, k, v});
  const at::NoGradGuard no_grad;
  const AttentionOutput output = attention_ops(q.device()).forward(q, k, v, rows, config);
  if (!records) return output.out_THE;
  std::vector<at::Tensor> saved = {q, k, v, output.out_THE};
  saved.insert(saved.end(), output.for_backward.begin(), output.for_backward.end());
  return with_backward(
      output.out_THE,
      {.op = "packed_attention",
       .inputs = {q, k, v},
       .saved = std::move(saved),
       .gradients = [rows, config](const at::Tensor& grad, const std::vector<at::Tensor>& kept,
                                   const std::vector<bool>&) -> std::vector<at::Tensor> {
         AttentionGradients gradients =
             attention_ops(grad.device())
                 .backward(grad, kept[0], kept[1], kept[2],
                           {kept[3], {kept.begin() + 4, kept.end()}}, rows, config);
         return {gradients.q_THE, gradients.k_TKE, gradients.v_TKE};
       }});
}

}  // namespace convoy::kernels
