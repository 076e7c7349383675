// SPDX-License-Identifier: Apache-2.0
//
// Speed of the kernels at the geometry `small` (hidden 512, 8 heads, 2 key/value heads, inner 1408,
// vocabulary 32000) and 1024 tokens, in GFLOP/s of the useful products. Compare figures of one run
// only.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>

#include "convoy/model/kernels/adamw/adamw_update.h"
#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"
#include "convoy/model/kernels/paged_attention/paged_attention.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/kernels/sampler/sampler.h"
#include "convoy/model/kernels/short_convolution/short_convolution.h"

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

// Linear attention of 16 heads of 128 features over rows of 512 tokens, or a step of generation of
// range(1) rows.
constexpr int64_t kLinearHeads = 16;
constexpr int64_t kLinearFeatures = 128;

void delta_rule(benchmark::State& state) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const auto heads = [&] {
    return at::randn({kTokens, kLinearHeads, kLinearFeatures}, options).requires_grad_(true);
  };
  const at::Tensor q = heads(), k = heads(), v = heads(), grad = at::randn_like(v);
  const at::Tensor decay = at::rand({kTokens, kLinearHeads}).mul_(-0.5).requires_grad_(true);
  const at::Tensor beta = at::rand({kTokens, kLinearHeads}).requires_grad_(true);
  const RowIndex rows({0, kTokens / 2, kTokens});
  for (auto unused : state)
    benchmark::DoNotOptimize(torch::autograd::grad({gated_delta_rule(q, k, v, decay, beta, rows)},
                                                   {q, k, v, decay, beta}, {grad}));
}
BENCHMARK(delta_rule)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void delta_rule_step(benchmark::State& state) {
  const int64_t count = state.range(1);
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const at::Tensor q = at::randn({count, kLinearHeads, kLinearFeatures}, options);
  const at::Tensor decay = at::rand({count, kLinearHeads}).mul_(-0.5);
  const at::Tensor states = at::randn({count, kLinearHeads, kLinearFeatures, kLinearFeatures});
  std::vector<int64_t> starts(count + 1);
  std::iota(starts.begin(), starts.end(), 0);
  const RowIndex rows(starts);
  for (auto unused : state)
    benchmark::DoNotOptimize(
        gated_delta_rule_with_state(q, q, q, decay, decay.neg(), rows, states));
}
BENCHMARK(delta_rule_step)->ArgsProduct({{0, 1}, {1, 8}})->UseRealTime();

void short_convolutions(benchmark::State& state) {
  const auto options = at::TensorOptions().dtype(dtype_of(state));
  const int64_t channels = 3 * kLinearHeads * kLinearFeatures;
  const at::Tensor x = at::randn({kTokens, channels}, options).requires_grad_(true);
  const at::Tensor weight = at::randn({channels, 4}, options).requires_grad_(true);
  const at::Tensor grad = at::randn_like(x);
  const RowIndex rows({0, kTokens / 2, kTokens});
  for (auto unused : state)
    benchmark::DoNotOptimize(
        torch::autograd::grad({short_convolution(x, weight, rows)}, {x, weight}, {grad}));
}
BENCHMARK(short_convolutions)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

// Generation. range(0): rows; a product of few rows is bound by the weight's bytes.
enum Weight { kBf16, kInt8, kInt4, kInt4Zero };

// Several matrices in turn, as the layers of a model: together more than the caches hold.
void few_rows(benchmark::State& state, Weight kind) {
  constexpr int64_t kMatrices = 24;
  constexpr int64_t kWide = 2048;
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  std::vector<FrozenLinear> layers;
  for (int64_t layer = 0; layer < kMatrices; ++layer) {
    const at::Tensor weight = at::randn({kWide, kWide}, options);
    constexpr WeightFormat kFormats[] = {WeightFormat::Int8, WeightFormat::Int8, WeightFormat::Int4,
                                         WeightFormat::Int4Zero};
    if (kind == kBf16)
      layers.emplace_back(weight, at::Tensor());
    else
      layers.emplace_back(quantize_weight(weight, {.weight = kFormats[kind], .group_inputs = 32}),
                          at::Tensor());
  }
  const at::Tensor x = at::randn({state.range(0), kWide}, options);
  for (auto unused : state) {
    for (const FrozenLinear& layer : layers) benchmark::DoNotOptimize(layer.forward(x));
  }
  report(state, 2.0 * static_cast<double>(kMatrices * kWide * kWide * state.range(0)));
}
void row_counts(benchmark::internal::Benchmark* bench) {
  bench->Arg(1)->Arg(4)->Arg(16)->Arg(32)->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(few_rows, bf16, kBf16)->Apply(row_counts);
BENCHMARK_CAPTURE(few_rows, int8, kInt8)->Apply(row_counts);
BENCHMARK_CAPTURE(few_rows, int4, kInt4)->Apply(row_counts);
BENCHMARK_CAPTURE(few_rows, int4_zero, kInt4Zero)->Apply(row_counts);

// range(0): rows, range(1): tokens that each has, range(2): new ones.
void paged(benchmark::State& state, CacheElement element) {
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  const int64_t rows = state.range(0);
  const int64_t keys = state.range(1);
  const int64_t queries = state.range(2);
  const int64_t blocks = (keys + kBlockTokensStep - 1) / kBlockTokensStep;
  const PagedCache cache = make_paged_cache(
      {.num_blocks = rows * blocks, .num_kv_heads = kKvHeads, .head_dim = kHeadWidth}, options,
      element);
  std::vector<PagedRow> whole(rows);
  for (int64_t row = 0; row < rows; ++row) {
    whole[row] = {.num_queries = keys, .num_keys = keys, .blocks = {}};
    for (int64_t block = 0; block < blocks; ++block)
      whole[row].blocks.push_back(static_cast<int32_t>(block * rows + row));
  }
  const at::Tensor stored = at::randn({rows * keys, kKvHeads, kHeadWidth}, options);
  store_paged(stored, stored, cache, PagedRows(whole, kBlockTokensStep));
  std::vector<PagedRow> step = whole;
  for (PagedRow& row : step) row.num_queries = queries;
  const PagedRows rows_of_step(step, kBlockTokensStep);
  const at::Tensor q = at::randn({rows * queries, kHeads, kHeadWidth}, options);
  for (auto unused : state)
    benchmark::DoNotOptimize(paged_attention(q, cache, rows_of_step, {.scale = 0.125}));
  report(state, 4.0 * static_cast<double>(rows * queries * keys * kHeads * kHeadWidth));
}
void paged_shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 8, 32}) bench->Args({rows, 600, 1});
  bench->Args({1, 8000, 1})->Args({1, 600, 300})->Unit(benchmark::kMicrosecond)->UseRealTime();
}
BENCHMARK_CAPTURE(paged, bf16, CacheElement::Model)->Apply(paged_shapes);
BENCHMARK_CAPTURE(paged, int8, CacheElement::Int8)->Apply(paged_shapes);

// range(0): rows.
void sampling(benchmark::State& state, const SamplingRule& rule) {
  const at::Tensor logits = at::randn({state.range(0), kVocab}, at::kBFloat16);
  std::vector<SamplingRow> rows;
  for (int64_t row = 0; row < state.range(0); ++row)
    rows.push_back({.rule = rule, .uniform = static_cast<double>(row) / 32});
  for (auto unused : state) benchmark::DoNotOptimize(sample_tokens(logits, kVocab, rows));
}
void sampling_rows(benchmark::internal::Benchmark* bench) {
  bench->Arg(1)->Arg(32)->Unit(benchmark::kMicrosecond)->UseRealTime();
}
BENCHMARK_CAPTURE(sampling, greedy, SamplingRule{.temperature = 0})->Apply(sampling_rows);
BENCHMARK_CAPTURE(sampling, plain, SamplingRule{})->Apply(sampling_rows);
BENCHMARK_CAPTURE(sampling, top_p, SamplingRule{.temperature = 0.6, .top_p = 0.95})
    ->Apply(sampling_rows);
BENCHMARK_CAPTURE(sampling, top_k, SamplingRule{.top_k = 50})->Apply(sampling_rows);

// range(0): rows. The head of the geometry, with and without logits that are stored.
void greedy_head(benchmark::State& state, bool fused) {
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  const FrozenLinear head(at::randn({kVocab, kHidden}, options), {});
  const at::Tensor x = at::randn({state.range(0), kHidden}, options);
  const std::vector<SamplingRow> rows(state.range(0), {.rule = {.temperature = 0}});
  for (auto unused : state) {
    if (fused)
      benchmark::DoNotOptimize(head.argmax(x, kVocab));
    else
      benchmark::DoNotOptimize(sample_tokens(head.forward(x), kVocab, rows));
  }
}
BENCHMARK_CAPTURE(greedy_head, fused, true)->Apply(sampling_rows);
BENCHMARK_CAPTURE(greedy_head, stored, false)->Apply(sampling_rows);

// Sixteen million elements, in elements per second.
void adamw(benchmark::State& state, at::ScalarType value, at::ScalarType moments) {
  constexpr int64_t kElements = int64_t{1} << 24;
  AdamWTensors of{.value = at::randn({kElements}).to(value),
                  .gradient = at::randn({kElements}),
                  .exp_avg = at::zeros({kElements}, moments),
                  .exp_avg_sq = at::zeros({kElements}, moments)};
  if (moments == at::kByte) {
    of.exp_avg_scale = at::zeros({kElements / kMomentBlock});
    of.exp_avg_sq_scale = at::zeros({kElements / kMomentBlock});
  }
  int64_t step = 0;
  for (auto unused : state) adamw_update({of}, {.learning_rate = 1e-4, .step = ++step});
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK_CAPTURE(adamw, fp32, at::kFloat, at::kFloat)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, bf16, at::kFloat, at::kBFloat16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, codes, at::kFloat, at::kByte)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, bf16_without_master, at::kBFloat16, at::kBFloat16)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace convoy::kernels

BENCHMARK_MAIN();
