// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_attention.h"

#include <c10/util/StringUtil.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/paged_attention/paged_attention_launch.h"
#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"
#include "convoy/model/kernels/paged_attention/paged_head_sizes.h"

namespace convoy::kernels {
namespace {

at::Tensor with_contiguous_heads(const at::Tensor& x) {
  return x.stride(-1) == 1 ? x : x.contiguous();
}

void check_tokens(const at::Tensor& x_TKE, const PagedCache& cache, const PagedRows& rows) {
  CONVOY_INVARIANT(x_TKE.dim() == 3 && x_TKE.size(0) == rows.queries().num_tokens() &&
                       x_TKE.size(2) == cache.shape.head_dim && x_TKE.size(1) > 0 &&
                       x_TKE.size(1) % cache.shape.num_kv_heads == 0,
                   "a paged cache of {} heads of {} features needs [{}, heads, {}], found {}",
                   cache.shape.num_kv_heads, cache.shape.head_dim, rows.queries().num_tokens(),
                   cache.shape.head_dim, c10::str(x_TKE.sizes()));
  CONVOY_INVARIANT(x_TKE.scalar_type() == cache.dtype && x_TKE.device() == cache.keys.device(),
                   "a paged cache of {} on {} was given {} on {}", c10::toString(cache.dtype),
                   cache.keys.device().str(), c10::toString(x_TKE.scalar_type()),
                   x_TKE.device().str());
}

void check_blocks(const PagedCache& cache, const PagedRows& rows) {
  CONVOY_INVARIANT(rows.block_tokens() == cache.shape.block_tokens,
                   "rows of blocks of {} tokens do not fit a cache of blocks of {}",
                   rows.block_tokens(), cache.shape.block_tokens);
  CONVOY_INVARIANT(rows.end_block() <= cache.shape.num_blocks,
                   "a cache of {} blocks has no block {}", cache.shape.num_blocks,
                   rows.end_block() - 1);
}

void check_visible(const PagedRows& rows, const AttentionConfig& config) {
  const int64_t window = config.sliding_window > 0 ? config.sliding_window : INT64_MAX;
  CONVOY_INVARIANT(window <= rows.widest_window(),
                   "a row sees tokens without a block: there are blocks for a window of {}",
                   rows.widest_window());
}

void check_stored(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
                  const PagedRows& rows) {
  check_tokens(k_TKE, cache, rows);
  check_tokens(v_TKE, cache, rows);
  CONVOY_INVARIANT(k_TKE.size(1) == cache.shape.num_kv_heads && v_TKE.sizes() == k_TKE.sizes(),
                   "a paged cache of {} heads was given keys of {} and values of {}",
                   cache.shape.num_kv_heads, k_TKE.size(1), v_TKE.size(1));
  check_blocks(cache, rows);
}

void check_transform(const HeadTransform& transform, const PagedCache& cache,
                     const PagedRows& rows) {
  const int64_t features = cache.shape.head_dim;
  for (const at::Tensor& norm_E : {transform.query_norm_E, transform.key_norm_E})
    CONVOY_INVARIANT(!norm_E.defined() || (norm_E.is_contiguous() && norm_E.numel() == features &&
                                           norm_E.scalar_type() == cache.dtype),
                     "norms of heads need {} features", features);
  for (const at::Tensor& table_PE : {transform.cos_PE, transform.sin_PE})
    CONVOY_INVARIANT(
        table_PE.defined() == transform.positions_T.defined() &&
            (!table_PE.defined() || (table_PE.is_contiguous() && table_PE.size(1) * 2 == features)),
        "a rotation of heads of {} features needs two tables of half as many columns", features);
  CONVOY_INVARIANT(!transform.positions_T.defined() ||
                       (transform.positions_T.is_contiguous() &&
                        transform.positions_T.numel() == rows.queries().num_tokens()),
                   "a rotation needs one position per token");
}

}  // namespace

bool fits_paged_kernels(int64_t head_dim) {
  return head_dim % gpu::kThreadElements == 0 && head_dim <= gpu::kLargestHeadDim;
}

void store_paged(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
                 const PagedRows& rows) {
  check_stored(k_TKE, v_TKE, cache, rows);
  if (k_TKE.numel() == 0) return;
  const at::NoGradGuard no_grad;
  paged_attention_ops(k_TKE.device())
      .store(with_contiguous_heads(k_TKE), with_contiguous_heads(v_TKE), cache, rows);
}

at::Tensor transform_and_store(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const at::Tensor& v_TKE, const HeadTransform& transform,
                               const PagedCache& cache, const PagedRows& rows) {
  check_tokens(q_THE, cache, rows);
  check_stored(k_TKE, v_TKE, cache, rows);
  check_transform(transform, cache, rows);
  if (k_TKE.numel() == 0) return q_THE;
  const at::NoGradGuard no_grad;
  return paged_attention_ops(k_TKE.device())
      .transform_and_store(with_contiguous_heads(q_THE), with_contiguous_heads(k_TKE),
                           with_contiguous_heads(v_TKE), transform, cache, rows);
}

at::Tensor transform_and_store_in_steps(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                                        const at::Tensor& v_TKE, const HeadTransform& transform,
                                        const PagedCache& cache, const PagedRows& rows) {
  const RotatedHeads heads = transformed_heads(q_THE, k_TKE, transform);
  store_paged(heads.k_TKE, v_TKE, cache, rows);
  return heads.q_THE;
}

at::Tensor paged_attention(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                           const AttentionConfig& config) {
  check_tokens(q_THE, cache, rows);
  check_blocks(cache, rows);
  check_visible(rows, config);
  if (q_THE.numel() == 0) return at::empty(q_THE.sizes(), q_THE.options());
  const at::NoGradGuard no_grad;
  return paged_attention_ops(q_THE.device())
      .attend(with_contiguous_heads(q_THE), cache, rows, config);
}

}  // namespace convoy::kernels
