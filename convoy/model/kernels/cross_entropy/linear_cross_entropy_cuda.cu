// SPDX-License-Identifier: Apache-2.0
//
// A block per row of fp32 logits. One reading finds their maximum and the sum of their exponentials
// at once (online softmax, arXiv 1805.02867); a second reading overwrites the row by its softmax,
// less 1 at the label: in fp32 or, from the row's first byte on, in bf16. The logits are read twice
// and the gradient written once. Reference: linear_cross_entropy_aten.cpp.
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_launch.h"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {
namespace {

constexpr float kLowest = -3.40282347e38f;  // finite, so that differences of two are numbers

// sum of exp(x - max) over the logits seen. A NaN is in the sum, not in the maximum.
struct SoftmaxState {
  float max;
  float sum;

  CONVOY_DEVICE static SoftmaxState none() { return {kLowest, 0}; }
  template <int kCount>
  CONVOY_DEVICE void add(const float (&x)[kCount], uint64_t) {
    float greatest = max;
    for (int i = 0; i < kCount; ++i) greatest = x[i] > greatest ? x[i] : greatest;
    sum *= exponential(max - greatest);
    max = greatest;
    for (int i = 0; i < kCount; ++i) sum += exponential(x[i] - max);
  }
  CONVOY_DEVICE void join(const SoftmaxState& other) {
    const float greatest = other.max > max ? other.max : max;
    sum = sum * exponential(max - greatest) + other.sum * exponential(other.max - greatest);
    max = greatest;
  }
  CONVOY_DEVICE SoftmaxState across(int distance) const {
    return {from_lane_across(max, distance), from_lane_across(sum, distance)};
  }
};

// Finds the first of the greatest logits too.
struct LikeliestState {
  SoftmaxState softmax;
  int index;

  CONVOY_DEVICE static LikeliestState none() { return {SoftmaxState::none(), 0x7fffffff}; }
  template <int kCount>
  CONVOY_DEVICE void add(const float (&x)[kCount], uint64_t first) {
    float greatest = softmax.max;
    for (int i = 0; i < kCount; ++i) {
      if (!(x[i] > greatest)) continue;
      greatest = x[i];
      index = static_cast<int>(first) + i;
    }
    softmax.add(x, first);
  }
  CONVOY_DEVICE void join(const LikeliestState& other) {
    const bool equal = other.softmax.max == softmax.max;
    if (other.softmax.max > softmax.max || (equal && other.index < index)) index = other.index;
    softmax.join(other.softmax);
  }
  CONVOY_DEVICE LikeliestState across(int distance) const {
    return {softmax.across(distance), from_lane_across(index, distance)};
  }
};

template <class State, int kCount>
CONVOY_DEVICE State state_of(const float* logits, uint64_t vocab) {
  State state = State::none();
  for (uint64_t at = BlockTeam::thread() * kCount; at < vocab; at += kBlockThreads * kCount) {
    float x[kCount];
    load(logits + at, x);
    state.add(x, at);
  }
  return BlockTeam::joined(state);
}

// Computed from differences, since a logit of 20 would cost a small loss its digits.
CONVOY_DEVICE float nll_of(const SoftmaxState& state, float logit_of_label) {
  return (state.max - logit_of_label) + logarithm(state.sum);
}

// A tile of the row is read by all threads before any writes: bf16 gradients overwrite logits of
// this tile and of earlier tiles.
template <class Element, int kCount>
CONVOY_DEVICE void store_gradients(float* row, const CrossEntropyLaunch& launch, uint64_t label,
                                   float weight, const SoftmaxState& state) {
  const uint64_t vocab = launch.vocab;
  const float scale = quotient(weight, state.sum);
  auto* to = reinterpret_cast<Element*>(row);
  for (uint64_t tile = 0; tile < vocab; tile += kBlockThreads * kCount) {
    const uint64_t at = tile + BlockTeam::thread() * kCount;
    float x[kCount] = {};
    if (at < vocab) load(row + at, x);
    if (sizeof(Element) < sizeof(float)) wait_for_block();
    if (at >= vocab) continue;
    for (int i = 0; i < kCount; ++i) {
      const float share = x[i] * launch.inverse_cap;
      x[i] = exponential(x[i] - state.max) * scale - (at + i == label ? weight : 0.0f);
      if (launch.inverse_cap > 0) x[i] *= 1.0f - share * share;
    }
    store(to + at, x);
  }
}

template <class Element, int kCount>
CONVOY_DEVICE void differentiate(const CrossEntropyLaunch& launch) {
  for (uint64_t row = nvidia::block_number(); row < launch.rows; row += nvidia::num_blocks()) {
    float* const logits = launch.logits + row * launch.vocab;
    const auto label = static_cast<uint64_t>(launch.labels[row]);
    const float logit_of_label = logits[label];  // before a gradient takes its place
    const auto state = state_of<SoftmaxState, kCount>(logits, launch.vocab);
    if (BlockTeam::thread() == 0) launch.nll[row] = nll_of(state, logit_of_label);
    const float weight = launch.weights == nullptr ? 1.0f : launch.weights[row];
    store_gradients<Element, kCount>(logits, launch, label, weight, state);
  }
}

template <int kCount>
CONVOY_DEVICE void judge(const CrossEntropyLaunch& launch) {
  for (uint64_t row = nvidia::block_number(); row < launch.rows; row += nvidia::num_blocks()) {
    const float* const logits = launch.logits + row * launch.vocab;
    const int64_t label = launch.labels[row];
    const auto state = state_of<LikeliestState, kCount>(logits, launch.vocab);
    if (BlockTeam::thread() != 0) continue;
    launch.nll[row] = nll_of(state.softmax, logits[label]);
    if (launch.correct != nullptr) launch.correct[row] = state.index == label;
  }
}

// The gradient times a factor that lies on the GPU. The product is rounded once.
template <class From, class To>
CONVOY_DEVICE void scale(const ScaleLaunch& launch) {
  const float factor = *launch.factor;
  for_elements<kLogitsTogether>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    float x[decltype(count)::value];
    load(static_cast<const From*>(launch.from) + at, x);
    for (float& value : x) value *= factor;
    store(static_cast<To*>(launch.to) + at, x);
  });
}

}  // namespace

#define CONVOY_CROSS_ENTROPY(Element, type)                                           \
  CONVOY_KERNEL void cross_entropy_gradient_##type(const CrossEntropyLaunch launch) { \
    if (launch.vectors)                                                               \
      differentiate<Element, kLogitsTogether>(launch);                                \
    else                                                                              \
      differentiate<Element, 1>(launch);                                              \
  }                                                                                   \
  CONVOY_KERNEL void scale_fp32_to_##type(const ScaleLaunch launch) {                 \
    scale<float, Element>(launch);                                                    \
  }                                                                                   \
  CONVOY_KERNEL void scale_bf16_to_##type(const ScaleLaunch launch) {                 \
    scale<Bf16, Element>(launch);                                                     \
  }

CONVOY_CROSS_ENTROPY(float, fp32)
CONVOY_CROSS_ENTROPY(Bf16, bf16)

CONVOY_KERNEL void label_losses(const CrossEntropyLaunch launch) {
  if (launch.vectors)
    judge<kLogitsTogether>(launch);
  else
    judge<1>(launch);
}

}  // namespace convoy::kernels::gpu
