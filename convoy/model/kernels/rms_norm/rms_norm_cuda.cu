// SPDX-License-Identifier: Apache-2.0
//
// A warp computes rows of up to 1,024 elements, a block longer ones. Each row is read twice, the
// second time from cache. Memory traffic forward: x and y once (and `added` and `sum`). Memory
// traffic backward: x, the gradient, `added` and the result once. The weight's gradient is a kernel
// of its own that reads x and the gradient once more: only full fine-tuning needs it. Sums in fp32.
// Reference: rms_norm_aten.cpp.

#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/rms_norm/rms_norm_launch.h"

namespace convoy::kernels::gpu {
namespace {

// Calls body(first) for a row, with neighbouring elements in neighbouring threads.
template <class Team, int kCount, class Body>
CONVOY_DEVICE void for_row(uint64_t width, Body body) {
  for (uint64_t at = Team::thread() * kCount; at < width; at += Team::kThreads * kCount) body(at);
}

template <class Element, class Team, int kCount>
CONVOY_DEVICE void norm_rows(const RmsNormLaunch& launch) {
  const auto* weight = static_cast<const Element*>(launch.weight);
  for (uint64_t row = Team::first_row(); row < launch.rows; row += Team::row_step()) {
    const uint64_t first = row * launch.width;
    const auto* from = static_cast<const Element*>(launch.x) + first;
    auto* to = static_cast<Element*>(launch.result) + first;
    const auto* added = static_cast<const Element*>(launch.added);
    auto* sum = static_cast<Element*>(launch.sum) + first;
    float squares = 0;
    for_row<Team, kCount>(launch.width, [&](uint64_t at) {
      float x[kCount];
      load(from + at, x);
      if (added != nullptr) {
        float more[kCount];
        load(added + first + at, more);
        for (int i = 0; i < kCount; ++i) x[i] = rounded<Element>(x[i] + more[i]);
        store(sum + at, x);
      }
      for (int i = 0; i < kCount; ++i) squares = __builtin_fmaf(x[i], x[i], squares);
    });
    const float mean =
        __nvvm_div_rn_f(Team::joined(Sum{squares}).value, static_cast<float>(launch.width));
    const float inverse = inverse_root(mean + launch.epsilon);
    if (launch.inverse_rms != nullptr && Team::thread() == 0) launch.inverse_rms[row] = inverse;
    if (added != nullptr) from = sum;  // each thread reads what it wrote itself
    for_row<Team, kCount>(launch.width, [&](uint64_t at) {
      float x[kCount], scale[kCount];
      load(from + at, x);
      load(weight + at, scale);
      for (int i = 0; i < kCount; ++i)
        x[i] = scaled_norm<Element>(x[i] * inverse, scale[i], launch.scale_by_one_plus != 0);
      store(to + at, x);
    });
  }
}

// With n = x / rms: d(n) = grad * scale, d(x) = (d(n) - n * mean(d(n) * n)) / rms.
template <class Element, class Team, int kCount>
CONVOY_DEVICE void differentiate_rows(const RmsNormLaunch& launch) {
  const auto* weight = static_cast<const Element*>(launch.weight);
  for (uint64_t row = Team::first_row(); row < launch.rows; row += Team::row_step()) {
    const auto* from = static_cast<const Element*>(launch.x) + row * launch.width;
    const auto* incoming = static_cast<const Element*>(launch.grad) + row * launch.width;
    auto* to = static_cast<Element*>(launch.result) + row * launch.width;
    const auto* added = static_cast<const Element*>(launch.added);
    const float inverse = launch.inverse_rms[row];
    // Reads kCount elements and gives their normal form and d(n).
    const auto read = [&](uint64_t at, float(&normal)[kCount], float(&grad)[kCount]) {
      float scale[kCount];
      load(from + at, normal);
      load(incoming + at, grad);
      load(weight + at, scale);
      for (int i = 0; i < kCount; ++i) {
        normal[i] *= inverse;
        grad[i] *= launch.scale_by_one_plus ? 1.0f + scale[i] : scale[i];
      }
    };
    float products = 0;
    for_row<Team, kCount>(launch.width, [&](uint64_t at) {
      float normal[kCount], grad[kCount];
      read(at, normal, grad);
      for (int i = 0; i < kCount; ++i) products = __builtin_fmaf(grad[i], normal[i], products);
    });
    const float along =
        __nvvm_div_rn_f(Team::joined(Sum{products}).value, static_cast<float>(launch.width));
    for_row<Team, kCount>(launch.width, [&](uint64_t at) {
      float normal[kCount], grad[kCount];
      read(at, normal, grad);
      for (int i = 0; i < kCount; ++i) grad[i] = (grad[i] - normal[i] * along) * inverse;
      if (added != nullptr) {
        float more[kCount];
        load(added + row * launch.width + at, more);
        for (int i = 0; i < kCount; ++i) grad[i] += more[i];
      }
      store(to + at, grad);
    });
  }
}

// A block sums kWarpThreads * kCount columns over one part of the rows: a warp every eighth row,
// then the warps in order.
template <class Element, int kCount>
CONVOY_DEVICE void sum_columns(const RmsNormLaunch& launch) {
  constexpr uint64_t kColumns = kWarpThreads * kCount;
  CONVOY_SHARED float of_warps[kBlockWarps][kColumns];
  const uint32_t lane = thread_of_block() % kWarpThreads;
  const uint32_t warp = thread_of_block() / kWarpThreads;
  const uint64_t tiles = (launch.width + kColumns - 1) / kColumns;
  const uint64_t parts = (launch.rows + kNormRowsPerPart - 1) / kNormRowsPerPart;
  for (uint64_t task = nvidia::block_number(); task < parts * tiles; task += nvidia::num_blocks()) {
    const uint64_t part = task / tiles, first_column = task % tiles * kColumns;
    const uint64_t column = first_column + lane * kCount;
    const uint64_t end_of_part = (part + 1) * kNormRowsPerPart;
    const uint64_t end = end_of_part < launch.rows ? end_of_part : launch.rows;
    float sums[kCount] = {};
    if (column < launch.width) {
      for (uint64_t row = part * kNormRowsPerPart + warp; row < end; row += kBlockWarps) {
        float x[kCount], grad[kCount];
        load(static_cast<const Element*>(launch.x) + row * launch.width + column, x);
        load(static_cast<const Element*>(launch.grad) + row * launch.width + column, grad);
        for (int i = 0; i < kCount; ++i)
          sums[i] = __builtin_fmaf(grad[i], x[i] * launch.inverse_rms[row], sums[i]);
      }
    }
    for (int i = 0; i < kCount; ++i) of_warps[warp][lane * kCount + i] = sums[i];
    wait_for_block();
    const uint32_t own = thread_of_block();
    if (own < kColumns && first_column + own < launch.width) {
      float sum = 0;
      for (uint32_t from = 0; from < kBlockWarps; ++from) sum += of_warps[from][own];
      launch.sums[part * launch.width + first_column + own] = sum;
    }
    wait_for_block();
  }
}

template <class Element, class Team>
CONVOY_DEVICE void norm(const RmsNormLaunch& launch) {
  if (launch.vectors)
    norm_rows<Element, Team, kPerLoad<Element>>(launch);
  else
    norm_rows<Element, Team, 1>(launch);
}

template <class Element, class Team>
CONVOY_DEVICE void differentiate(const RmsNormLaunch& launch) {
  if (launch.vectors)
    differentiate_rows<Element, Team, kPerLoad<Element>>(launch);
  else
    differentiate_rows<Element, Team, 1>(launch);
}

}  // namespace

#define CONVOY_RMS_NORM(Element, type)                                             \
  CONVOY_KERNEL void rms_norm_##type(const RmsNormLaunch launch) {                 \
    if (launch.width <= kLongestWarpRow)                                           \
      norm<Element, WarpTeam>(launch);                                             \
    else                                                                           \
      norm<Element, BlockTeam>(launch);                                            \
  }                                                                                \
  CONVOY_KERNEL void rms_norm_backward_##type(const RmsNormLaunch launch) {        \
    if (launch.width <= kLongestWarpRow)                                           \
      differentiate<Element, WarpTeam>(launch);                                    \
    else                                                                           \
      differentiate<Element, BlockTeam>(launch);                                   \
  }                                                                                \
  CONVOY_KERNEL void rms_norm_weight_gradient_##type(const RmsNormLaunch launch) { \
    if (launch.vectors)                                                            \
      sum_columns<Element, kPerLoad<Element>>(launch);                             \
    else                                                                           \
      sum_columns<Element, 1>(launch);                                             \
  }

CONVOY_RMS_NORM(float, fp32)
CONVOY_RMS_NORM(Bf16, bf16)

}  // namespace convoy::kernels::gpu
