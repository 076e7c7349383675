// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check of `mf` on a GPU, one guess per thread: the same arithmetic as on CPUs, from the
// same files. Few guesses pass, so a guess that passes adds its loss at once. Kernels for the
// papers' matrices of kPaperSide rows and columns keep everything in registers: mf_pair_* computes
// two layers whose width is a whole number of blocks of slots, mf_square_* any number of layers as
// wide as the matrix. mf_any_* computes all shapes and keeps the matrices between layers in memory.
// Each kernel exists once per precision and prior. Compiled like guess_kernels.cu.
#include <stddef.h>
#include <stdint.h>

#include "convoy/farm/experiments/cuda/factor_launch.h"
#include "convoy/farm/experiments/cuda/loss_sums.cuh"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments::cuda {
namespace {

inline constexpr int kWideGuesses = 1;
inline constexpr uint32_t kRowsTogether = kPaperSide;

#pragma clang force_cuda_host_device begin
// The order matters: each file needs the files before it.
// clang-format off
#include "convoy/farm/experiments/random/lanes_scalar.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/mf/wide_scalar.inl"
#include "convoy/farm/experiments/mf/factor_arithmetic.inl"
// clang-format on
#pragma clang force_cuda_host_device end

template <Precision kPrecisionOf, bool kNormalOf>
struct SlotForm {
  static constexpr Precision kPrecision = kPrecisionOf;
  static constexpr bool kNormal = kNormalOf;
  static constexpr bool kPacked = kPrecision == Precision::Fast && kNormal;
  static constexpr uint32_t kPerBlock = kPacked ? kPackedSlotsPerBlock : kSlotsPerBlock;
};

CONVOY_DEVICE void store_slots(float* to, const NormalPair& pair) {
  Lanes::store_halves(to + 1, to, pair.first);
  Lanes::store_halves(to + 3, to + 2, pair.second);
}

template <class Form>
CONVOY_DEVICE void make_block(const FactorLaunch& launch, const GuessWords& guess, uint32_t block,
                              float* slots) {
  const WordPair words =
      philox_lanes<philox_rounds(Form::kPrecision)>(launch.address, launch.slots[block], guess);
  if constexpr (Form::kPacked) {
    store_slots(slots, packed_normal_pair(words.even));
    store_slots(slots + kSlotsPerBlock, packed_normal_pair(words.odd));
  } else {
    store_slots(slots, four_slots<Form::kPrecision, Form::kNormal>(words));
  }
}

// Turns the sums into units of the layer: scales them and applies the activation.
template <uint32_t kCount>
CONVOY_DEVICE void finish(const FactorLaunch& launch, const FactorLayer& layer,
                          float (&sums)[kCount]) {
#pragma unroll
  for (float& sum : sums) sum *= layer.scale;
  if (!layer.hidden || launch.activation == MfActivation::Linear) return;
#pragma unroll
  for (float& sum : sums)
    sum = activated(launch.activation, launch.negative_slope, {{sum}}).guess[0];
}

// Computes kRowsTogether rows, from `row` on, of all units of a layer whose input is `in`.
template <class Form>
CONVOY_DEVICE void make_rows(const FactorLaunch& launch, const GuessWords& guess,
                             const FactorLayer& layer, const float* in, float* out, uint32_t row) {
  const uint32_t rows = launch.n_rows - row, step = launch.n_rows * kBlockThreads;
  const float* const first = in + row * kBlockThreads;
  const float* from = first;
  float* to = out + row * kBlockThreads;
  float sums[kRowsTogether] = {};
  uint32_t left = layer.inputs;
  for (uint32_t done = 0; done < layer.num_slots; done += Form::kPerBlock) {
    float weights[Form::kPerBlock];
    make_block<Form>(launch, guess, layer.first_block + done / Form::kPerBlock, weights);
#pragma unroll
    for (uint32_t slot = 0; slot < Form::kPerBlock; ++slot) {
      if (done + slot == layer.num_slots) return;
#pragma unroll
      for (uint32_t at = 0; at < kRowsTogether; ++at)
        if (at < rows) sums[at] = __builtin_fmaf(from[at * kBlockThreads], weights[slot], sums[at]);
      from += step;
      if (--left > 0) continue;
      finish(launch, layer, sums);
#pragma unroll
      for (uint32_t at = 0; at < kRowsTogether; ++at) {
        if (at < rows) to[at * kBlockThreads] = sums[at];
        sums[at] = 0;
      }
      to += step;
      from = first;
      left = layer.inputs;
    }
  }
}

// Computes the first layer, whose input is the identity matrix.
template <class Form>
CONVOY_DEVICE void make_first(const FactorLaunch& launch, const GuessWords& guess,
                              const FactorLayer& layer, float* out) {
  for (uint32_t done = 0; done < layer.num_slots; done += Form::kPerBlock) {
    float values[Form::kPerBlock];
    make_block<Form>(launch, guess, layer.first_block + done / Form::kPerBlock, values);
    finish(launch, layer, values);
#pragma unroll
    for (uint32_t slot = 0; slot < Form::kPerBlock; ++slot)
      if (done + slot < layer.num_slots) out[(done + slot) * kBlockThreads] = values[slot];
  }
}

// Computes Y in one of the two matrices and returns that matrix.
template <class Form>
CONVOY_DEVICE float* make_any(const FactorLaunch& launch, const GuessWords& guess, float* one,
                              float* other) {
  make_first<Form>(launch, guess, launch.layers[0], one);
  for (uint32_t at = 1; at < launch.num_layers; ++at) {
    const FactorLayer layer = launch.layers[at];
    for (uint32_t row = 0; row < launch.n_rows; row += kRowsTogether)
      make_rows<Form>(launch, guess, layer, one, other, row);
    float* const in = one;
    one = other;
    other = in;
  }
  return one;
}

// Computes Y of two layers for matrices of kPaperSide rows and columns. Each hidden unit is used as
// soon as it is made; hidden units are made in groups that match a block of the second layer's
// slots.
template <class Form>
CONVOY_DEVICE float* make_pair(const FactorLaunch& launch, const GuessWords& guess, float* to,
                               float*) {
  constexpr uint32_t kSide = kPaperSide, kUnits = Form::kPerBlock;
  const FactorLayer first = launch.layers[0], second = launch.layers[1];
  const uint32_t turns = second.inputs / kUnits;
  float y[kSide * kSide] = {};
#pragma unroll 1
  for (uint32_t turn = 0; turn < turns; ++turn) {
    float hidden[kUnits * kSide];
#pragma unroll
    for (uint32_t block = 0; block < kSide; ++block)
      make_block<Form>(launch, guess, first.first_block + turn * kSide + block,
                       hidden + block * Form::kPerBlock);
    finish(launch, first, hidden);
#pragma unroll
    for (uint32_t col = 0; col < kSide; ++col) {
      float weights[kUnits];
      make_block<Form>(launch, guess, second.first_block + col * turns + turn, weights);
#pragma unroll
      for (uint32_t unit = 0; unit < kUnits; ++unit)
#pragma unroll
        for (uint32_t row = 0; row < kSide; ++row)
          y[col * kSide + row] =
              __builtin_fmaf(hidden[unit * kSide + row], weights[unit], y[col * kSide + row]);
    }
  }
  finish(launch, second, y);
#pragma unroll
  for (uint32_t at = 0; at < kSide * kSide; ++at) to[at * kBlockThreads] = y[at];
  return to;
}

// Computes Y of layers of kPaperSide units each.
template <class Form>
CONVOY_DEVICE float* make_square(const FactorLaunch& launch, const GuessWords& guess, float* to,
                                 float*) {
  constexpr uint32_t kSide = kPaperSide, kSlots = kSide * kSide;
  constexpr uint32_t kBlocks = (kSlots + Form::kPerBlock - 1) / Form::kPerBlock;
  float y[kBlocks * Form::kPerBlock];
#pragma unroll
  for (uint32_t block = 0; block < kBlocks; ++block)
    make_block<Form>(launch, guess, block, y + block * Form::kPerBlock);
  finish(launch, launch.layers[0], y);
#pragma unroll 1
  for (uint32_t at = 1; at < launch.num_layers; ++at) {
    float next[kSlots] = {};
#pragma unroll
    for (uint32_t block = 0; block < kBlocks; ++block) {
      float weights[Form::kPerBlock];
      make_block<Form>(launch, guess, at * kBlocks + block, weights);
#pragma unroll
      for (uint32_t slot = block * Form::kPerBlock;
           slot < kSlots && slot < (block + 1) * Form::kPerBlock; ++slot)
#pragma unroll
        for (uint32_t row = 0; row < kSide; ++row) {
          float& sum = next[slot / kSide * kSide + row];
          sum = __builtin_fmaf(y[slot % kSide * kSide + row], weights[slot % Form::kPerBlock], sum);
        }
    }
    finish(launch, launch.layers[at], next);
#pragma unroll
    for (uint32_t slot = 0; slot < kSlots; ++slot) y[slot] = next[slot];
  }
#pragma unroll
  for (uint32_t at = 0; at < kSlots; ++at) to[at * kBlockThreads] = y[at];
  return to;
}

CONVOY_DEVICE bool passes(const FactorLaunch& launch, float* y) {
  const auto entry = [&](uint32_t at) __attribute__((always_inline)) {
    return Wide{{y[at * kBlockThreads]}};
  };
  if (launch.normalize) {
    const uint32_t num_entries = launch.n_rows * launch.n_cols;
    const float factor = norm_factor(num_entries, launch.softening, entry).guess[0];
    for (uint32_t at = 0; at < num_entries; ++at) y[at * kBlockThreads] *= factor;
  }
  // The sum of squares never decreases, so the loop may stop once the sum reaches the limit.
  float sum = 0;
  for (uint32_t row = 0; row < launch.num_rows && !(sum >= launch.limit); ++row) {
    const float residual = row_residual(launch.rows[row], launch.coefficients, entry).guess[0];
    sum = __builtin_fmaf(residual, residual, sum);
  }
  return sum < launch.limit;
}

// Computes MfProblem::test_loss. `left`: scratch memory, one double per entry of the matrix.
CONVOY_DEVICE double test_loss(const FactorLaunch& launch, const float* y, double* left) {
  const uint32_t num_entries = launch.n_rows * launch.n_cols;
  for (uint32_t row = 0, at = 0; row < launch.n_rows; ++row)
    for (uint32_t col = 0; col < launch.n_cols; ++col, ++at)
      left[at * kBlockThreads] =
          double{y[(col * launch.n_rows + row) * kBlockThreads]} - launch.truth[at];
  const double* known = launch.span;
  for (uint32_t one = 0; one < launch.num_span; ++one, known += num_entries) {
    double part = 0;
    for (uint32_t at = 0; at < num_entries; ++at) part += known[at] * left[at * kBlockThreads];
    for (uint32_t at = 0; at < num_entries; ++at) left[at * kBlockThreads] -= part * known[at];
  }
  double sum = 0;
  for (uint32_t at = 0; at < num_entries; ++at)
    sum += left[at * kBlockThreads] * left[at * kBlockThreads];
  return sum / launch.num_tested;
}

// Computes a guess in one of the two matrices and returns that matrix.
using Make = float* (*)(const FactorLaunch&, const GuessWords&, float*, float*);

template <Make kMake>
CONVOY_DEVICE void check_guesses(const FactorLaunch& launch) {
  const uint32_t thread = nvidia::thread_number() % kBlockThreads;
  const uint64_t values = memory_values(launch.matrix_values, launch.n_rows * launch.n_cols);
  float* const own = launch.memory + nvidia::block_number() * values * kBlockThreads;
  float* const other = own + size_t{launch.matrix_values} * kBlockThreads;
  float* const left = other + size_t{launch.matrix_values} * kBlockThreads;
  for (uint32_t at = nvidia::thread_number(); at < launch.num_guesses;
       at += nvidia::num_threads()) {
    const uint32_t number = launch.first_guess + at;
    const GuessWords guess = guess_words(launch.address, &number);
    float* const y = kMake(launch, guess, own + thread, other + thread);
    if (!passes(launch, y)) continue;
    LossSums sums;
    add_loss(sums, test_loss(launch, y, reinterpret_cast<double*>(left) + thread));
    share_sums(launch.sums, sums);
  }
}

}  // namespace

#define CONVOY_FACTORS(name, ...)                                  \
  CONVOY_KERNEL void mf_pair_##name(const FactorLaunch launch) {   \
    check_guesses<make_pair<SlotForm<__VA_ARGS__>>>(launch);       \
  }                                                                \
  CONVOY_KERNEL void mf_square_##name(const FactorLaunch launch) { \
    check_guesses<make_square<SlotForm<__VA_ARGS__>>>(launch);     \
  }                                                                \
  CONVOY_KERNEL void mf_any_##name(const FactorLaunch launch) {    \
    check_guesses<make_any<SlotForm<__VA_ARGS__>>>(launch);        \
  }

CONVOY_FACTORS(exact_gauss, Precision::Exact, true)
CONVOY_FACTORS(exact_unif, Precision::Exact, false)
CONVOY_FACTORS(fast_gauss, Precision::Fast, true)
CONVOY_FACTORS(fast_unif, Precision::Fast, false)

}  // namespace convoy::experiments::cuda
