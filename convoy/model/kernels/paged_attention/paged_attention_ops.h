// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for paged_attention. Arguments are checked; features are
// contiguous.
#pragma once

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/paged_attention/head_transform.h"
#include "convoy/model/kernels/paged_attention/paged_cache.h"
#include "convoy/model/kernels/paged_attention/paged_rows.h"

namespace convoy::kernels {

struct PagedAttentionOps {
  PagedCache (*make_cache)(const PagedShape& shape, const at::TensorOptions& model,
                           CacheElement element);
  void (*store)(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
                const PagedRows& rows);
  at::Tensor (*transform_and_store)(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                                    const at::Tensor& v_TKE, const HeadTransform& transform,
                                    const PagedCache& cache, const PagedRows& rows);
  at::Tensor (*attend)(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                       const AttentionConfig& config);
};

// transform_and_store() by the device's other ops, one after another.
at::Tensor transform_and_store_in_steps(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                                        const at::Tensor& v_TKE, const HeadTransform& transform,
                                        const PagedCache& cache, const PagedRows& rows);

const PagedAttentionOps& paged_attention_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const PagedAttentionOps kPagedAttentionCpu;
extern const PagedAttentionOps kPagedAttentionAten;  // any device
extern const PagedAttentionOps kPagedAttentionCuda;

}  // namespace convoy::kernels
