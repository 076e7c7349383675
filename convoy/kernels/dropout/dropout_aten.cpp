// SPDX-License-Identifier: Apache-2.0
//
// The 32-bit words of the hash in int64 tensors: products wrap, and their low half is right.
#include "convoy/kernels/dropout/dropout_ops.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kLowHalf = 0xffffffff;

void shift_and_multiply(at::Tensor& words, int64_t shift, uint32_t factor) {
  words.bitwise_xor_(words.bitwise_right_shift(shift));
  words.mul_(static_cast<int64_t>(factor)).bitwise_and_(kLowHalf);
}

void mix(at::Tensor& words) {
  shift_and_multiply(words, 16, kDropFactor1);
  shift_and_multiply(words, 15, kDropFactor2);
  words.bitwise_xor_(words.bitwise_right_shift(15));
}

at::Tensor drop(const at::Tensor& x, const DropRule& rule) {
  const at::Tensor index = at::arange(x.numel(), x.options().dtype(at::kLong));
  at::Tensor words = index.bitwise_and(kLowHalf).bitwise_xor_(static_cast<int64_t>(rule.key_low));
  mix(words);
  const at::Tensor high = index.bitwise_right_shift(32)
                              .mul_(static_cast<int64_t>(kDropFactor1))
                              .add_(static_cast<int64_t>(rule.key_high))
                              .bitwise_and_(kLowHalf);
  words.bitwise_xor_(high);
  mix(words);
  const at::Tensor kept = words.ge(static_cast<int64_t>(rule.dropped_below)).view(x.sizes());
  return x.to(at::kFloat).mul(kept.to(at::kFloat).mul_(rule.scale)).to(x.scalar_type());
}

}  // namespace

const DropoutOps kDropoutAten = {drop};

}  // namespace convoy::kernels
