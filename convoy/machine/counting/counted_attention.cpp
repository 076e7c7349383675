// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_attention.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convoy/machine/counting/recording.h"
#include "convoy/machine/counting/traffic.h"

namespace convoy::counting {
namespace {

// Number of pairs for the first `keys` positions. Each position sees itself and the positions
// before it, at most `window` in all.
int64_t pairs_of_first(int64_t keys, int64_t window) {
  const int64_t growing = std::min(keys, window);
  return growing * (growing + 1) / 2 + (keys - growing) * window;
}

// Number of pairs of a query and a key that it sees. Queries are at the last of the keys'
// positions. Without causality a window limits only the past.
int64_t seen_pairs(int64_t queries, int64_t keys, bool is_causal, std::optional<int64_t> before) {
  const int64_t window = std::min(keys, before ? *before + 1 : keys);
  if (is_causal) return pairs_of_first(keys, window) - pairs_of_first(keys - queries, window);
  return queries * window;
}

// Counts attention over packed rows. Each row counts as long as the longest one.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> flash_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& starts, const std::optional<at::Tensor>&, int64_t most_queries,
    int64_t most_keys, double, bool is_causal, bool, std::optional<double>,
    std::optional<int64_t> before, std::optional<int64_t>, const std::optional<at::Tensor>&,
    const std::optional<at::Tensor>&) {
  TORCH_CHECK(query.dim() == 3 && starts.has_value(),
              "counting device: flash attention of packed rows alone");
  const at::Tensor out = at::empty(query.sizes(), query.options());
  const at::Tensor sums =
      at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
  const at::Tensor state = at::empty({2}, query.options().dtype(at::kLong));
  const auto rows = static_cast<double>(starts->numel() - 1);
  const auto pairs = static_cast<double>(seen_pairs(most_queries, most_keys, is_causal, before));
  Work work = work_of({.name = "aten::_flash_attention_forward",
                       .arguments = {{query}, {key}, {value}},
                       .results = {out, sums}});
  work.flops = 4.0 * rows * pairs * static_cast<double>(query.size(1) * query.size(2));
  work.product = {.batch = (starts->numel() - 1) * query.size(1),
                  .rows = most_queries,
                  .columns = 1,
                  .inner = query.size(2),
                  .on_tensor_cores = true,
                  .kind = ProductKind::Attention};
  record(std::move(work));
  return {out, sums, state, at::empty({0}, state.options()), at::empty({0}, query.options())};
}

// Counts three kernels. Where heads share keys, two more add up the gradients of these heads.
std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& sums, const at::Tensor& starts, const at::Tensor&,
    int64_t most_queries, int64_t most_keys, double, bool is_causal, const at::Tensor&,
    const at::Tensor&, std::optional<double>, std::optional<int64_t> before,
    std::optional<int64_t>) {
  constexpr double kOfForward = 2.5;
  const bool shares_keys = query.size(1) != key.size(1);
  const auto rows = static_cast<double>(starts.numel() - 1);
  const auto pairs = static_cast<double>(seen_pairs(most_queries, most_keys, is_causal, before));
  const auto wide = query.options().dtype(at::kFloat);
  const at::Tensor query_sums = at::empty(query.sizes(), wide);
  const at::Tensor dots = at::empty(sums.sizes(), wide);
  const at::Tensor grad_query = at::empty(query.sizes(), query.options());
  const at::Tensor grad_key = at::empty(key.sizes(), key.options());
  const at::Tensor grad_value = at::empty(value.sizes(), value.options());
  OpTensors tensors{.name = "aten::_flash_attention_backward",
                    .arguments = {{grad}, {query}, {key}, {value}, {out}, {sums}},
                    .results = {grad_query, grad_key, grad_value}};
  tensors.arguments.push_back({query_sums, /*writes=*/true});
  tensors.arguments.push_back({dots, /*writes=*/true});
  if (shares_keys)
    for (int each = 0; each < 2; ++each)
      tensors.arguments.push_back({at::empty(query.sizes(), query.options()), /*writes=*/true});
  Work work = work_of(tensors);
  work.launches = shares_keys ? 5 : 3;
  work.flops = kOfForward * 4.0 * rows * pairs * static_cast<double>(query.size(1) * query.size(2));
  work.product = {.batch = (starts.numel() - 1) * query.size(1),
                  .rows = most_keys,
                  .columns = 1,
                  .inner = query.size(2),
                  .on_tensor_cores = true,
                  .kind = ProductKind::AttentionBackward};
  record(std::move(work));
  return {grad_query, grad_key, grad_value};
}

// Rows in cuDNN's layout: [B, H, S, E], or packed [T, H, E], where each row counts as long as the
// longest one. For packed rows LibTorch computes lengths and offsets with small kernels (MHA.cpp).
struct CudnnBatch {
  CudnnBatch(const at::Tensor& query, const at::Tensor& starts, int64_t most)
      : is_packed(starts.defined()),
        rows(is_packed ? starts.numel() - 1 : query.size(0)),
        heads(query.size(1)),
        longest(most) {}
  double pairs() const {
    return static_cast<double>(rows) * static_cast<double>(seen_pairs(longest, longest, true, {}));
  }
  void describe(Work& work, double products, ProductKind kind, int64_t width) const {
    constexpr int64_t kSmallKernels = 7;
    work.launches += is_packed ? kSmallKernels : 0;
    work.flops = 2.0 * products * pairs() * static_cast<double>(heads * width);
    work.product = {.batch = rows * heads,
                    .rows = longest,
                    .columns = 1,
                    .inner = width,
                    .on_tensor_cores = true,
                    .kind = kind};
  }
  bool is_packed;
  int64_t rows, heads, longest;
};

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
           at::Tensor, at::Tensor>
cudnn_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const std::optional<at::Tensor>&, const std::optional<at::Tensor>& starts,
                const std::optional<at::Tensor>& key_starts, c10::SymInt most_queries,
                c10::SymInt most_keys, bool, double, bool is_causal, bool, std::optional<double>) {
  TORCH_CHECK(is_causal && most_queries == most_keys, "counting device: causal attention alone");
  const CudnnBatch batch(query, starts.value_or(at::Tensor()), most_queries.expect_int());
  const at::Tensor out = at::empty_like(query);
  std::vector<int64_t> of_sums = query.sizes().vec();
  of_sums.back() = 1;
  const at::Tensor sums = at::empty(of_sums, query.options().dtype(at::kFloat));
  const at::Tensor state = at::empty({}, query.options().dtype(at::kLong));
  Work work = work_of({.name = "aten::_cudnn_attention_forward",
                       .arguments = {{query}, {key}, {value}},
                       .results = {out, sums}});
  batch.describe(work, 2, ProductKind::CudnnAttention, query.size(-1));
  record(std::move(work));
  return {out,
          sums,
          starts.value_or(at::Tensor()),
          key_starts.value_or(at::Tensor()),
          most_queries,
          most_keys,
          state,
          state,
          at::Tensor()};
}

// Counts three kernels, which also add up the gradients of heads that share keys.
std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& sums, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor& starts, const at::Tensor&, int64_t most_queries, int64_t,
    double, bool, std::optional<double>) {
  const CudnnBatch batch(query, starts, most_queries);
  const at::Tensor query_sums = at::empty(query.sizes(), query.options().dtype(at::kFloat));
  OpTensors tensors{.name = "aten::_cudnn_attention_backward",
                    .arguments = {{grad}, {query}, {key}, {value}, {out}, {sums}},
                    .results = {at::empty_like(query), at::empty_like(key), at::empty_like(value)}};
  tensors.arguments.push_back({query_sums, /*writes=*/true});
  Work work = work_of(tensors);
  work.launches = 3;
  batch.describe(work, 5, ProductKind::CudnnAttentionBackward, query.size(-1));
  record(std::move(work));
  return {tensors.results[0], tensors.results[1], tensors.results[2]};
}

}  // namespace

void register_counted_attention(torch::Library& library) {
  library.impl("_flash_attention_forward", &flash_attention);
  library.impl("_flash_attention_backward", &flash_attention_backward);
  library.impl("_cudnn_attention_forward", &cudnn_attention);
  library.impl("_cudnn_attention_backward", &cudnn_attention_backward);
}

}  // namespace convoy::counting
