// SPDX-License-Identifier: Apache-2.0
//
// Parts of paged attention in ATen calls, for devices whose own kernels do not compute them. The
// cache is [blocks, block_tokens, kv_heads, head_dim], its scales are [blocks, block_tokens,
// kv_heads].
#pragma once

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/paged_attention/paged_cache.h"
#include "convoy/model/kernels/paged_attention/paged_rows.h"

namespace convoy::kernels::paged {

// The tokens of blocks in the order of blocks_N, [N * block_tokens, K, E], in `dtype`. `part` is
// the cache's keys or values, `scales` their scales or undefined.
at::Tensor gather_blocks(const at::Tensor& part, const at::Tensor& scales,
                         const at::Tensor& blocks_N, at::ScalarType dtype);

// Attention of the rows of rows.prefill() alone, whose P new tokens are packed in q_PHE. Returns
// [P, H, E].
at::Tensor attend_prefill(const at::Tensor& q_PHE, const PagedCache& cache, const PagedRows& rows,
                          const AttentionConfig& config);

}  // namespace convoy::kernels::paged
