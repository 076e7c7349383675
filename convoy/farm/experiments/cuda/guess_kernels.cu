// SPDX-License-Identifier: Apache-2.0
//
// Guess-and-check of `ssm` on a GPU, one guess per thread: the same arithmetic as on CPUs, from the
// same files. ssm_test_* writes the indices of the guesses that pass. ssm_losses_* computes those
// guesses again with all powers and adds up their losses. There is one pair of kernels per
// precision and set of powers (GuessKernels::kSets). Compiled by clang to PTX without CUDA's
// toolkit, and without contraction of products and sums.
#include <stddef.h>
#include <stdint.h>

#include <utility>

#include "convoy/farm/experiments/cuda/guess_launch.h"
#include "convoy/farm/experiments/cuda/loss_sums.cuh"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments::cuda {
namespace {

using nvidia::atomic_add;
using nvidia::num_threads;
using nvidia::thread_number;

#pragma clang force_cuda_host_device begin
#include "convoy/farm/experiments/random/lanes_scalar.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/ssm/guess_arithmetic.inl"
#include "convoy/farm/experiments/ssm/guess_vectors.inl"
#pragma clang force_cuda_host_device end

template <Precision kPrecision, uint32_t kPowers>
CONVOY_DEVICE void power_sums(const GuessLaunch& launch, uint32_t guess, float* sums) {
  GuessVector<kPrecision, kPowers> vector;
  vector.sum_slots(launch.address, launch.slots, launch.num_slots, &guess);
  for (uint32_t at = 0; at < PowerList<kPowers>::kLargest; ++at)
    Lanes::store_sums(sums + at, vector.total(at));
}

template <uint32_t kPowers>
CONVOY_DEVICE bool passes(const GuessLaunch& launch, const float* sums) {
  constexpr uint32_t kLargest = PowerList<kPowers>::kLargest;
  double s[kLargest];
  for (uint32_t at = 0; at < kLargest; ++at)
    guess_residual<double>(s[at], sums[at], launch.scales[at], launch.targets[at]);
  double loss = 0;
  for (uint32_t row = 0; row < launch.num_rows; ++row)
    add_squared_row(loss, launch.rows + row * kLaunchPowers, s, kPowers & launch.tested, kLargest);
  return loss / launch.divisor < launch.eps_train;
}

template <Precision kPrecision, uint32_t kPowers>
CONVOY_DEVICE void test_guesses(const GuessLaunch& launch) {
  for (uint32_t at = thread_number(); at < launch.num_guesses; at += num_threads()) {
    const uint32_t guess = launch.first_guess + at;
    float sums[PowerList<kPowers>::kLargest];
    power_sums<kPrecision, kPowers>(launch, guess, sums);
    if (passes<kPowers>(launch, sums)) launch.accepted[atomic_add(launch.num_accepted, 1u)] = guess;
  }
}

template <Precision kPrecision, uint32_t kPowers>
CONVOY_DEVICE void add_losses(const GuessLaunch& launch) {
  constexpr uint32_t kLargest = PowerList<kPowers>::kLargest;
  const uint32_t num_accepted = *launch.num_accepted;
  LossSums own;
  for (uint32_t at = thread_number(); at < num_accepted; at += num_threads()) {
    float sums[kLargest];
    double s[kLargest];
    power_sums<kPrecision, kPowers>(launch, launch.accepted[at], sums);
    for (uint32_t power = 0; power < kLargest; ++power) {
      s[power] = 0;
      if (power < launch.num_powers)
        guess_residual<double>(s[power], sums[power], launch.scales[power], launch.targets[power]);
    }
    double loss = 0;
    add_squares(loss, s, kLargest);
    add_loss(own, loss);
  }
  if (own.accepted == 0) return;
  share_sums(launch.sums, own);
}

}  // namespace

#define CONVOY_TEST(powers)                                              \
  CONVOY_KERNEL void ssm_test_exact_##powers(const GuessLaunch launch) { \
    test_guesses<Precision::Exact, powers>(launch);                      \
  }                                                                      \
  CONVOY_KERNEL void ssm_test_fast_##powers(const GuessLaunch launch) {  \
    test_guesses<Precision::Fast, powers>(launch);                       \
  }
#define CONVOY_LOSSES(powers)                                              \
  CONVOY_KERNEL void ssm_losses_exact_##powers(const GuessLaunch launch) { \
    add_losses<Precision::Exact, powers>(launch);                          \
  }                                                                        \
  CONVOY_KERNEL void ssm_losses_fast_##powers(const GuessLaunch launch) {  \
    add_losses<Precision::Fast, powers>(launch);                           \
  }

CONVOY_TEST(1)
CONVOY_TEST(2)
CONVOY_TEST(3)
CONVOY_TEST(4)
CONVOY_TEST(5) CONVOY_TEST(6) CONVOY_TEST(7) CONVOY_TEST(8) CONVOY_TEST(9) CONVOY_TEST(10)
    CONVOY_TEST(11) CONVOY_TEST(12) CONVOY_TEST(13) CONVOY_TEST(14) CONVOY_TEST(15) CONVOY_TEST(63)
        CONVOY_TEST(255) CONVOY_TEST(65535) CONVOY_LOSSES(1) CONVOY_LOSSES(3) CONVOY_LOSSES(7)
            CONVOY_LOSSES(15) CONVOY_LOSSES(63) CONVOY_LOSSES(255) CONVOY_LOSSES(65535)

}  // namespace convoy::experiments::cuda
