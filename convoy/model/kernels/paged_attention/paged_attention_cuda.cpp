// SPDX-License-Identifier: Apache-2.0
//
// Our decode kernel computes rows of one new token. LibTorch's FlashAttention-2 computes pieces of
// prompts, over gathered blocks. The cache has the layout of paged_attention_aten.cpp, so that file
// computes heads that the kernels do not take (features that 8 does not divide, more than 256), and
// scores under a soft cap.
#include <numbers>

#include "convoy/model/kernels/attention/attention_cuda.h"
#include "convoy/model/kernels/cuda/block_shape.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/paged_attention/paged_attention_aten.h"
#include "convoy/model/kernels/paged_attention/paged_attention_launch.h"
#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"
#include "convoy/model/kernels/paged_attention/paged_head_sizes.h"

namespace convoy::kernels {
namespace {

static_assert(sizeof(gpu::DecodeRow) == 3 * sizeof(int32_t));

bool fits_kernels(const PagedCache& cache) { return fits_paged_kernels(cache.shape.head_dim); }

// `x_THE`, or a copy of it whose heads can all be read by vectors.
at::Tensor with_vectors(const at::Tensor& x_THE) {
  const bool fits =
      fits_vectors({x_THE}, x_THE.stride(0)) && fits_vectors({x_THE}, x_THE.stride(1));
  return fits ? x_THE : x_THE.contiguous();
}

float* scales_of(const at::Tensor& scales) {
  return scales.defined() ? scales.mutable_data_ptr<float>() : nullptr;
}

gpu::PagedPool pool_of(const PagedCache& cache) {
  return {.keys = cache.keys.mutable_data_ptr(),
          .values = cache.values.mutable_data_ptr(),
          .key_scales = scales_of(cache.key_scales),
          .value_scales = scales_of(cache.value_scales),
          .block_tokens = static_cast<uint32_t>(cache.shape.block_tokens),
          .kv_heads = static_cast<uint32_t>(cache.shape.num_kv_heads),
          .head_dim = static_cast<uint32_t>(cache.shape.head_dim)};
}

// Bytes that a launch reads of the pool, for devices that count launches: keys() keys, and as many
// values.
template <class Keys>
PartlyMoved moved_of_pool(const PagedCache& cache, const Keys& keys) {
  PartlyMoved moved;
  if (!cache.keys.is_privateuseone()) return moved;
  const int64_t heads = keys() * cache.shape.num_kv_heads;
  for (const at::Tensor& part : {cache.keys, cache.values})
    moved.emplace_back(part.const_data_ptr(), heads * cache.shape.head_dim * part.element_size());
  for (const at::Tensor& scales : {cache.key_scales, cache.value_scales})
    if (scales.defined())
      moved.emplace_back(scales.const_data_ptr(), heads * scales.element_size());
  return moved;
}

std::string stored_kernel(const std::string& name, const PagedCache& cache) {
  return kernel_name(cache.element == CacheElement::Int8 ? name + "_int8" : name, cache.dtype);
}

gpu::PagedStoreLaunch launch_of(const at::Tensor& keys, const at::Tensor& values,
                                const PagedCache& cache, const PagedRows& rows) {
  return {.pool = pool_of(cache),
          .keys = keys.const_data_ptr(),
          .values = values.const_data_ptr(),
          .slots = rows.slots_T().const_data_ptr<int64_t>(),
          .key_token_stride = keys.stride(0),
          .key_head_stride = keys.stride(1),
          .value_token_stride = values.stride(0),
          .value_head_stride = values.stride(1),
          .tokens = static_cast<uint64_t>(keys.size(0))};
}

void start_store(const at::Tensor& keys, const PagedCache& cache,
                 const gpu::PagedStoreLaunch& launched, PartlyMoved moved = {}) {
  for (auto& of_pool : moved_of_pool(cache, [&] { return keys.size(0); })) moved.push_back(of_pool);
  const uint64_t heads = launched.tokens * (launched.query_heads + 2 * launched.pool.kv_heads);
  launch(keys, stored_kernel("paged_store", cache), gpu::blocks_for_rows(heads, 1), launched,
         moved);
}

void store(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
           const PagedRows& rows) {
  if (!fits_kernels(cache)) return kPagedAttentionAten.store(k_TKE, v_TKE, cache, rows);
  const at::Tensor keys = with_vectors(k_TKE), values = with_vectors(v_TKE);
  start_store(keys, cache, launch_of(keys, values, cache, rows));
}

// A lane rotates elements of one half of a head together with elements that another lane holds.
bool fits_transform(const HeadTransform& transform, const PagedCache& cache) {
  const int64_t features = cache.shape.head_dim;
  const auto fits = [](const at::Tensor& tensor, int64_t width) {
    return !tensor.defined() || fits_vectors({tensor}, width);
  };
  return fits_kernels(cache) && fits(transform.query_norm_E, features) &&
         fits(transform.key_norm_E, features) &&
         (!transform.cos_PE.defined() ||
          (features % (2 * gpu::kThreadElements) == 0 && fits(transform.cos_PE, features / 2) &&
           fits(transform.sin_PE, features / 2)));
}

const void* address_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

at::Tensor transform_and_store(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                               const at::Tensor& v_TKE, const HeadTransform& transform,
                               const PagedCache& cache, const PagedRows& rows) {
  if (transform.is_empty() || !fits_transform(transform, cache))
    return transform_and_store_in_steps(q_THE, k_TKE, v_TKE, transform, cache, rows);
  const at::Tensor queries = with_vectors(q_THE), keys = with_vectors(k_TKE),
                   values = with_vectors(v_TKE);
  const at::Tensor out_THE = at::empty(q_THE.sizes(), q_THE.options());
  gpu::PagedStoreLaunch launched = launch_of(keys, values, cache, rows);
  launched.queries = queries.const_data_ptr();
  launched.transformed_queries = out_THE.mutable_data_ptr();
  launched.query_token_stride = queries.stride(0);
  launched.query_head_stride = queries.stride(1);
  launched.query_heads = static_cast<uint64_t>(queries.size(1));
  launched.query_norm = address_of(transform.query_norm_E);
  launched.key_norm = address_of(transform.key_norm_E);
  launched.epsilon = static_cast<float>(transform.norm_epsilon);
  launched.scale_by_one_plus = transform.norm_order == NormOrder::ScaleByOnePlusThenCast;
  PartlyMoved moved;
  if (transform.cos_PE.defined()) {
    launched.cos = transform.cos_PE.const_data_ptr<float>();
    launched.sin = transform.sin_PE.const_data_ptr<float>();
    launched.positions = transform.positions_T.const_data_ptr<int64_t>();
    const int64_t read_bytes = keys.size(0) * transform.cos_PE.size(1) * int64_t{sizeof(float)};
    moved = {{launched.cos, read_bytes}, {launched.sin, read_bytes}};
  }
  start_store(keys, cache, launched, std::move(moved));
  return out_THE;
}

// A kernel for one new token per row, and the number of query heads of a kv head that one of its
// blocks takes.
struct DecodeKernel {
  std::string name;
  int64_t heads;
};

DecodeKernel decode_kernel(const PagedCache& cache, int64_t group) {
  const int64_t features = cache.shape.head_dim;
  if (cache.dtype == at::kBFloat16 && (features == 64 || features == 128))
    return {stored_kernel(fmt::format("paged_group_{}", features), cache), 8};
  const int64_t heads = group == 1 ? 1 : group == 2 ? 2 : group <= 4 ? 4 : 8;
  return {stored_kernel(fmt::format("paged_decode_{}", heads), cache), heads};
}

// The most parts of tasks that are divided among shares: each boundary of shares inside a task adds
// one part, and the first boundary inside a task adds one more.
int64_t most_parts(int64_t shares, int64_t tasks) { return shares + std::min(shares, tasks); }

void decode(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
            const AttentionConfig& config, const at::Tensor& out_THE) {
  const int64_t num_rows = rows.decode_rows_D3().size(0);
  if (num_rows == 0) return;
  const at::Tensor q = with_vectors(q_THE);
  const int64_t heads = q.size(1), kv_heads = cache.shape.num_kv_heads;
  const DecodeKernel kernel = decode_kernel(cache, heads / kv_heads);
  const int64_t tasks = gpu::RowTasks(static_cast<uint32_t>(heads), static_cast<uint32_t>(kv_heads),
                                      static_cast<uint32_t>(kernel.heads))
                            .count;
  const int64_t keys = rows.decode_keys(config.sliding_window);
  const int64_t most_steps = (keys / gpu::kKeyStep + 2 * num_rows) * tasks;
  const int64_t shares = std::min(most_steps, blocks_at_once(q, kernel.name));
  // One step is never divided, so shorter rows have no parts.
  const bool has_parts = rows.longest_decode_keys() > gpu::kKeyStep;
  const int64_t parts = has_parts ? 2 * shares * kernel.heads : 0;
  static_assert(sizeof(gpu::HeadParts) == 2 * sizeof(float));
  const at::Tensor partial =
      at::empty({parts * (cache.shape.head_dim + 2) + (has_parts ? 2 * num_rows * tasks : 0)},
                q.options().dtype(at::kFloat));
  auto* const partial_sums = partial.mutable_data_ptr<float>();
  auto* const partial_tops = partial_sums + parts * cache.shape.head_dim;
  const gpu::PagedDecodeLaunch launched = {
      .pool = pool_of(cache),
      .q = q.const_data_ptr(),
      .out = out_THE.mutable_data_ptr(),
      .partial_sums = partial_sums,
      .partial_tops = partial_tops,
      .partial_divisors = partial_tops + parts,
      .parts = reinterpret_cast<gpu::HeadParts*>(partial_tops + 2 * parts),
      .block_table = rows.block_table_RN().const_data_ptr<int32_t>(),
      .rows = static_cast<const gpu::DecodeRow*>(rows.decode_rows_D3().const_data_ptr()),
      .q_token_stride = q.stride(0),
      .q_head_stride = q.stride(1),
      .num_rows = static_cast<uint32_t>(num_rows),
      .table_width = static_cast<uint32_t>(rows.block_table_RN().size(1)),
      .heads = static_cast<uint32_t>(heads),
      .task_heads = static_cast<uint32_t>(kernel.heads),
      .shares = static_cast<uint32_t>(shares),
      .window = static_cast<uint32_t>(config.sliding_window),
      .scale_for_base_2 = static_cast<float>(config.scale * std::numbers::log2e)};
  const std::pair<const void*, int64_t> moved_of_parts = {
      partial_sums, most_parts(shares, num_rows * tasks) * heads / tasks *
                        (cache.shape.head_dim + 2) * static_cast<int64_t>(sizeof(float))};
  PartlyMoved moved = moved_of_pool(cache, [&] { return tasks / kv_heads * keys; });
  moved.push_back(moved_of_parts);
  launch(q, kernel.name, static_cast<uint64_t>(shares), launched, moved);
  if (!has_parts) return;
  gpu::PagedDecodeLaunch joined = launched;
  joined.q = nullptr;
  joined.pool.keys = joined.pool.values = nullptr;
  joined.pool.key_scales = joined.pool.value_scales = nullptr;
  launch(q, kernel_name("paged_join", q.scalar_type()), static_cast<uint64_t>(num_rows * heads),
         joined, {moved_of_parts});
}

at::Tensor prefill_by_flash(const at::Tensor& q_PHE, const PagedCache& cache,
                            const PrefillRows& rows, const AttentionConfig& config) {
  const at::Tensor keys =
      paged::gather_blocks(cache.keys, cache.key_scales, rows.blocks_N, cache.dtype);
  const at::Tensor values =
      paged::gather_blocks(cache.values, cache.value_scales, rows.blocks_N, cache.dtype);
  return std::get<0>(at::_flash_attention_forward(
      q_PHE, keys, values, rows.query_starts, rows.key_starts, rows.longest_queries,
      rows.longest_keys, 0.0, true, false, config.scale, flash_window(config), std::nullopt,
      rows.used_keys));
}

void prefill(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
             const AttentionConfig& config, const at::Tensor& out_THE) {
  const PrefillRows& prefill = rows.prefill();
  if (prefill.empty()) return;
  const int64_t tokens = prefill.starts.back();
  const at::Tensor q_PHE = prefill.is_contiguous ? q_THE.narrow(0, prefill.first_token, tokens)
                                                 : q_THE.index_select(0, prefill.tokens_P);
  const at::Tensor found_PHE = takes_flash(q_PHE, config)
                                   ? prefill_by_flash(q_PHE, cache, prefill, config)
                                   : paged::attend_prefill(q_PHE, cache, rows, config);
  if (prefill.is_contiguous)
    out_THE.narrow(0, prefill.first_token, tokens).copy_(found_PHE);
  else
    out_THE.index_copy_(0, prefill.tokens_P, found_PHE);
}

at::Tensor attend(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                  const AttentionConfig& config) {
  if (!fits_kernels(cache) || config.score_cap > 0)
    return kPagedAttentionAten.attend(q_THE, cache, rows, config);
  const at::Tensor out_THE = at::empty(q_THE.sizes(), q_THE.options());
  decode(q_THE, cache, rows, config, out_THE);
  prefill(q_THE, cache, rows, config, out_THE);
  return out_THE;
}

}  // namespace

const PagedAttentionOps kPagedAttentionCuda = {kPagedAttentionAten.make_cache, store,
                                               transform_and_store, attend};

}  // namespace convoy::kernels
