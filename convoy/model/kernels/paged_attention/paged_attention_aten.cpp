// SPDX-License-Identifier: Apache-2.0
//
// Blocks as [B, S, K, E], scales as [B, S, K]. A row's visible blocks are gathered, then attended
// like any cached row.
#include "convoy/model/kernels/paged_attention/paged_attention_aten.h"

#include "convoy/model/kernels/attention/attention_aten.h"
#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"

namespace convoy::kernels {
namespace {

constexpr double kLargestInt8 = 127.0;

PagedCache make_cache(const PagedShape& shape, const at::TensorOptions& model,
                      CacheElement element) {
  PagedCache cache{.shape = shape, .element = element, .dtype = model.dtype().toScalarType()};
  const bool quantised = element == CacheElement::Int8;
  const std::vector<int64_t> sizes{shape.num_blocks, shape.block_tokens, shape.num_kv_heads,
                                   shape.head_dim};
  for (at::Tensor* part : {&cache.keys, &cache.values})
    *part = at::empty(sizes, quantised ? model.dtype(at::kChar) : model);
  if (!quantised) return cache;
  for (at::Tensor* part : {&cache.key_scales, &cache.value_scales})
    *part = at::empty({sizes[0], sizes[1], sizes[2]}, model.dtype(at::kFloat));
  return cache;
}

void store_part(const at::Tensor& x_TKE, const at::Tensor& part, const at::Tensor& scales,
                const at::Tensor& slots_T) {
  const at::Tensor by_slot = part.flatten(0, 1);
  if (!scales.defined()) {
    by_slot.index_copy_(0, slots_T, x_TKE);
    return;
  }
  const at::Tensor wide = x_TKE.to(at::kFloat);
  at::Tensor scale_TK = wide.abs().amax({-1}).div_(kLargestInt8);
  scale_TK = scale_TK.masked_fill(scale_TK.isfinite().logical_not(), NAN);
  const at::Tensor steps = wide.div(scale_TK.unsqueeze(-1)).round_().nan_to_num_(0.0);
  by_slot.index_copy_(0, slots_T, steps.to(at::kChar));
  scales.flatten(0, 1).index_copy_(0, slots_T, scale_TK);
}

void store(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
           const PagedRows& rows) {
  store_part(k_TKE, cache.keys, cache.key_scales, rows.slots_T());
  store_part(v_TKE, cache.values, cache.value_scales, rows.slots_T());
}

CachedRow visible_row(const PagedCache& cache, const PagedRows& rows, int64_t number,
                      const AttentionConfig& config) {
  const PagedRow& row = rows.row(number);
  const int64_t size = cache.shape.block_tokens;
  const int64_t position = row.num_keys - row.num_queries;
  const int64_t first = config.sliding_window > 0
                            ? std::max<int64_t>(0, position - config.sliding_window + 1) / size
                            : 0;
  const int64_t keys = row.num_queries == 0 ? 0 : row.num_keys - first * size;
  const at::Tensor blocks_N =
      rows.block_table_RN().select(0, number).slice(0, first, first + (keys + size - 1) / size);
  const auto gathered = [&](const at::Tensor& part, const at::Tensor& scales) {
    return paged::gather_blocks(part, scales, blocks_N, cache.dtype).narrow(0, 0, keys);
  };
  return {gathered(cache.keys, cache.key_scales), gathered(cache.values, cache.value_scales)};
}

at::Tensor attend(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                  const AttentionConfig& config) {
  std::vector<CachedRow> cached;
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    cached.push_back(visible_row(cache, rows, row, config));
  return blockwise::cached(q_THE, cached, rows.queries(), config);
}

}  // namespace

namespace paged {

at::Tensor gather_blocks(const at::Tensor& part, const at::Tensor& scales,
                         const at::Tensor& blocks_N, at::ScalarType dtype) {
  at::Tensor found = part.index_select(0, blocks_N);
  if (scales.defined())
    found = found.to(at::kFloat).mul_(scales.index_select(0, blocks_N).unsqueeze(-1)).to(dtype);
  return found.flatten(0, 1);
}

at::Tensor attend_prefill(const at::Tensor& q_PHE, const PagedCache& cache, const PagedRows& rows,
                          const AttentionConfig& config) {
  std::vector<CachedRow> cached;
  for (const int64_t row : rows.prefill().rows)
    cached.push_back(visible_row(cache, rows, row, config));
  return blockwise::cached(q_PHE, cached, RowIndex(rows.prefill().starts), config);
}

}  // namespace paged

const PagedAttentionOps kPagedAttentionAten = {make_cache, store, transform_and_store_in_steps,
                                               attend};

}  // namespace convoy::kernels
