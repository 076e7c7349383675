// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for attention. Queries, keys and values have contiguous
// features, one dtype and lie on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/model/kernels/attention/attention.h"

namespace convoy::kernels {

// Keys and values [S, K, E] of one row. The row's queries belong to its last tokens.
struct CachedRow {
  at::Tensor k_SKE;
  at::Tensor v_SKE;
};

struct AttentionOutput {
  at::Tensor out_THE;
  std::vector<at::Tensor> for_backward;  // what the device's backward needs
};

struct AttentionGradients {
  at::Tensor q_THE;
  at::Tensor k_TKE;
  at::Tensor v_TKE;
};

struct AttentionOps {
  AttentionOutput (*forward)(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                             const at::Tensor& v_TKE, const RowIndex& rows,
                             const AttentionConfig& config);
  AttentionGradients (*backward)(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                                 const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                                 const AttentionOutput& output, const RowIndex& rows,
                                 const AttentionConfig& config);
};

const AttentionOps& attention_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const AttentionOps kAttentionCpu;
extern const AttentionOps kAttentionAten;  // any device
extern const AttentionOps kAttentionCuda;

}  // namespace convoy::kernels
