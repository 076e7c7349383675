// SPDX-License-Identifier: Apache-2.0
//
// Speed of the kernels at the geometry `small` (hidden 512, 8 heads, 2 key/value heads, inner 1408,
// vocabulary 32000) and 1024 tokens, in GFLOP/s of the useful products. Compare figures of one run
// only.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "convoy/kernels/attention/attention.h"
#include "convoy/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/kernels/frozen_linear/frozen_linear.h"
#include "convoy/kernels/gated_activation/gated_activation.h"
#include "convoy/kernels/rms_norm/rms_norm.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kTokens = 1024;
constexpr int64_t kHidden = 512;
constexpr int64_t kInner = 1408;
constexpr int64_t kHeads = 8;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadWidth = 64;
constexpr int64_t kVocab = 32000;

at::ScalarType dtype_of(const benchmark::State& state) {
  return state.range(0) == 0 ? at::kFloat : at::kBFloat16;
}

void report(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops / 1e9, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

// range(1): tokens of a row.
void attention(benchmark::State& state, bool with_library) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const int64_t row = state.range(1);
  std::vector<int64_t> row_starts;
  for (int64_t at = 0; at <= kTokens; at += row) row_starts.push_back(at);
  const int64_t rows = static_cast<int64_t>(row_starts.size()) - 1;
  const int64_t tokens = rows * row;
  const at::Tensor q = at::randn({tokens, kHeads, kHeadWidth}, options).requires_grad_(true);
  const at::Tensor k = at::randn({tokens, kKvHeads, kHeadWidth}, options).requires_grad_(true);
  const at::Tensor v = at::randn({tokens, kKvHeads, kHeadWidth}, options).requires_grad_(true);
  const at::Tensor grad = at::randn({tokens, kHeads, kHeadWidth}, options);
  const auto in_rows = [&](const at::Tensor& x) {
    return x.view({rows, row, x.size(1), kHeadWidth}).transpose(1, 2);
  };
  for (auto unused : state) {
    at::Tensor out;
    if (with_library) {
      const int64_t group = kHeads / kKvHeads;
      out = at::scaled_dot_product_attention(in_rows(q), in_rows(k).repeat_interleave(group, 1),
                                             in_rows(v).repeat_interleave(group, 1), {}, 0.0, true,
                                             0.125)
                .transpose(1, 2)
                .reshape({tokens, kHeads, kHeadWidth});
    } else {
      out = packed_attention(q, k, v, RowIndex(row_starts), {.scale = 0.125});
    }
    benchmark::DoNotOptimize(torch::autograd::grad({out}, {q, k, v}, {grad}));
  }
  // Causal: half of the scores, seven products of them (two forward, five backward).
  report(state, 7.0 * static_cast<double>(rows * row * row * kHeads * kHeadWidth));
}
BENCHMARK_CAPTURE(attention, ours, false)
    ->ArgsProduct({{0, 1}, {64, 102, 512}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(attention, libtorch, true)
    ->ArgsProduct({{0, 1}, {64, 102, 512}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void head(benchmark::State& state, bool trains_weight, bool with_library) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const at::Tensor hidden = at::randn({kTokens, kHidden}, options).requires_grad_(true);
  const at::Tensor weight =
      at::randn({kVocab, kHidden}, options).mul_(0.02).requires_grad_(trains_weight);
  const at::Tensor labels = at::randint(kVocab, {kTokens}, at::kLong);
  const LabelledTokens labelled({labels.const_data_ptr<int64_t>(), kTokens});
  for (auto unused : state) {
    const at::Tensor loss =
        with_library ? at::cross_entropy_loss(at::linear(hidden, weight).to(at::kFloat), labels)
                     : linear_cross_entropy(hidden, weight, labelled);
    loss.backward();
  }
  report(state, 2.0 * (trains_weight ? 3 : 2) * static_cast<double>(kTokens * kHidden * kVocab));
}
BENCHMARK_CAPTURE(head, frozen, false, false)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(head, trained, true, false)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(head, frozen_libtorch, false, true)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(head, trained_libtorch, true, true)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// range(1), range(2): inputs, outputs.
void linear(benchmark::State& state, bool with_library) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const at::Tensor weight = at::randn({state.range(2), state.range(1)}, options);
  const FrozenLinear packed(weight, {});
  const at::Tensor x = at::randn({kTokens, state.range(1)}, options).requires_grad_(true);
  const at::Tensor grad = at::randn({kTokens, state.range(2)}, options);
  for (auto unused : state) {
    const at::Tensor y = with_library ? at::linear(x, weight) : packed.forward(x);
    benchmark::DoNotOptimize(torch::autograd::grad({y}, {x}, {grad}));
  }
  report(state, 4.0 * static_cast<double>(kTokens * state.range(1) * state.range(2)));
}
void linear_shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t dtype : {0, 1}) {
    bench->Args({dtype, kHidden, kHidden})
        ->Args({dtype, kHidden, kInner})
        ->Args({dtype, kInner, kHidden});
  }
  bench->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(linear, ours, false)->Apply(linear_shapes);
BENCHMARK_CAPTURE(linear, libtorch, true)->Apply(linear_shapes);

void norm(benchmark::State& state) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const at::Tensor x = at::randn({kTokens, kHidden}, options).requires_grad_(true);
  const at::Tensor weight = at::ones({kHidden}, options);
  const at::Tensor grad = at::randn({kTokens, kHidden}, options);
  for (auto unused : state) {
    benchmark::DoNotOptimize(
        torch::autograd::grad({rms_norm(x, weight, 1e-6, NormOrder::CastThenScale)}, {x}, {grad}));
  }
}
BENCHMARK(norm)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void gated(benchmark::State& state) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const at::Tensor gate = at::randn({kTokens, kInner}, options).requires_grad_(true);
  const at::Tensor up = at::randn({kTokens, kInner}, options).requires_grad_(true);
  const at::Tensor grad = at::randn({kTokens, kInner}, options);
  for (auto unused : state) {
    benchmark::DoNotOptimize(
        torch::autograd::grad({gated_activation(gate, up, Activation::Silu)}, {gate, up}, {grad}));
  }
}
BENCHMARK(gated)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace convoy::kernels

BENCHMARK_MAIN();
