// SPDX-License-Identifier: Apache-2.0
//
// Causal attention of new tokens over a paged cache: rows of one new token and rows of many in one
// packed batch. On the CPU a token's bits depend on its own row alone, not on its neighbours, on
// how the row was cut into steps, or on the number of threads. Shapes: T new tokens of all rows, H
// query heads, K key/value heads (K divides H), E head features.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/paged_attention/head_transform.h"
#include "convoy/model/kernels/paged_attention/paged_cache.h"
#include "convoy/model/kernels/paged_attention/paged_rows.h"

namespace convoy::kernels {

// Writes keys and values of the new tokens into their blocks, quantised if the cache is quantised.
void store_paged(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
                 const PagedRows& rows);

// The same for transformed keys; the transformed queries [T, H, E] are returned. Not
// differentiable.
at::Tensor transform_and_store(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const at::Tensor& v_TKE, const HeadTransform& transform,
                               const PagedCache& cache, const PagedRows& rows);

// Not differentiable. The new tokens' keys are stored already. Blocks that no query sees because of
// the window may be kNoBlock. Throws StateError where a block that a query sees is kNoBlock.
// Returns [T, H, E].
at::Tensor paged_attention(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                           const AttentionConfig& config);

}  // namespace convoy::kernels
