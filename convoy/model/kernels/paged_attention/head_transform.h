// SPDX-License-Identifier: Apache-2.0
//
// The steps of queries and keys between their products and attention: a norm over each head, then
// the rotation by its position. A step is left out where its tensors are undefined. Shapes: T
// tokens, H heads, E head features, P positions of the table.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/kernels/rope/rope.h"

namespace convoy::kernels {

struct HeadTransform {
  at::Tensor query_norm_E = {};  // weights of rms_norm()
  at::Tensor key_norm_E = {};
  double norm_epsilon = 0;
  NormOrder norm_order = NormOrder::CastThenScale;
  at::Tensor cos_PE = {};  // tables of rope(), [P, E / 2]
  at::Tensor sin_PE = {};
  at::Tensor positions_T = {};  // int64

  bool is_empty() const {
    return !query_norm_E.defined() && !key_norm_E.defined() && !cos_PE.defined();
  }
};

// Queries and keys after the transform. Differentiable in them and the norms' weights.
RotatedHeads transformed_heads(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const HeadTransform& transform);
// The queries alone.
at::Tensor transformed_queries(const at::Tensor& q_THE, const HeadTransform& transform);

}  // namespace convoy::kernels
