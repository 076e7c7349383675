// SPDX-License-Identifier: Apache-2.0
//
// Computes the 32-bit words of the hash in int64 tensors. Products may wrap, but their low 32 bits
// are right.
#include "convoy/model/kernels/counter_draws/counter_words.h"

#include <ATen/ATen.h>

namespace convoy::kernels {
namespace {

constexpr int64_t kLowHalf = 0xffffffff;

void shift_and_multiply(at::Tensor& words, int64_t shift, uint32_t factor) {
  words.bitwise_xor_(words.bitwise_right_shift(shift));
  words.mul_(static_cast<int64_t>(factor)).bitwise_and_(kLowHalf);
}

void mix(at::Tensor& words) {
  shift_and_multiply(words, 16, kMixFactor1);
  shift_and_multiply(words, 15, kMixFactor2);
  words.bitwise_xor_(words.bitwise_right_shift(15));
}

}  // namespace

at::Tensor counter_words(CounterKey key, int64_t first, int64_t count, at::Device device) {
  const at::Tensor index =
      at::arange(first, first + count, at::TensorOptions().dtype(at::kLong).device(device));
  at::Tensor words = index.bitwise_and(kLowHalf).bitwise_xor_(static_cast<int64_t>(key.low));
  mix(words);
  const at::Tensor high = index.bitwise_right_shift(32)
                              .mul_(static_cast<int64_t>(kMixFactor1))
                              .add_(static_cast<int64_t>(key.high))
                              .bitwise_and_(kLowHalf);
  words.bitwise_xor_(high);
  mix(words);
  return words;
}

}  // namespace convoy::kernels
