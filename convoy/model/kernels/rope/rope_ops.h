// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for rope.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/rope/rope.h"

namespace convoy::kernels {

struct RopeOps {
  // `direction` 1 rotates, -1 rotates back. Result contiguous.
  at::Tensor (*rotate)(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                       const at::Tensor& positions_T, float direction);
  RotatedHeads (*rotate_both)(const RotatedHeads& heads, const at::Tensor& cos_PE,
                              const at::Tensor& sin_PE, const at::Tensor& positions_T,
                              float direction);
};

template <auto rotate>
RotatedHeads rotate_one_by_one(const RotatedHeads& heads, const at::Tensor& cos_PE,
                               const at::Tensor& sin_PE, const at::Tensor& positions_T,
                               float direction) {
  return {rotate(heads.q_THE, cos_PE, sin_PE, positions_T, direction),
          rotate(heads.k_TKE, cos_PE, sin_PE, positions_T, direction)};
}

const RopeOps& rope_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const RopeOps kRopeCpu;
extern const RopeOps kRopeAten;  // any device
extern const RopeOps kRopeCuda;

}  // namespace convoy::kernels
