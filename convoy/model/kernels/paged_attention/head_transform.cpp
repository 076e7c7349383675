// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/head_transform.h"

namespace convoy::kernels {

RotatedHeads transformed_heads(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const HeadTransform& transform) {
  const auto normed = [&transform](const at::Tensor& x_THE, const at::Tensor& weight_E) {
    return weight_E.defined() ? rms_norm(x_THE.contiguous(), weight_E, transform.norm_epsilon,
                                         transform.norm_order)
                              : x_THE;
  };
  const RotatedHeads heads{normed(q_THE, transform.query_norm_E),
                           normed(k_TKE, transform.key_norm_E)};
  return transform.cos_PE.defined()
             ? rope(heads, transform.cos_PE, transform.sin_PE, transform.positions_T)
             : heads;
}

}  // namespace convoy::kernels
