// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/head_transform.h"

namespace convoy::kernels {
namespace {

at::Tensor normed_heads(const at::Tensor& x_THE, const at::Tensor& weight_E,
                        const HeadTransform& transform) {
  if (!weight_E.defined()) return x_THE;
  return rms_norm(x_THE.contiguous(), weight_E, transform.norm_epsilon, transform.norm_order);
}

}  // namespace

RotatedHeads transformed_heads(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const HeadTransform& transform) {
  const RotatedHeads heads{normed_heads(q_THE, transform.query_norm_E, transform),
                           normed_heads(k_TKE, transform.key_norm_E, transform)};
  return transform.cos_PE.defined()
             ? rope(heads, transform.cos_PE, transform.sin_PE, transform.positions_T)
             : heads;
}

at::Tensor transformed_queries(const at::Tensor& q_THE, const HeadTransform& transform) {
  const at::Tensor heads_THE = normed_heads(q_THE, transform.query_norm_E, transform);
  return transform.cos_PE.defined()
             ? rope(heads_THE, transform.cos_PE, transform.sin_PE, transform.positions_T)
             : heads_THE;
}

}  // namespace convoy::kernels
