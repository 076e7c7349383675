// SPDX-License-Identifier: Apache-2.0
//
// The addresses of random numbers. Every number of a sweep has an address: the seeds (the key), a
// stream, a guess and a slot within the guess (the counter). A number depends on its address alone,
// so a guess is the same on any device, in any batch, split or resumed run. Cells of one seed share
// their numbers: slot j of guess g is the same at every student dimension.
#pragma once

#include <cstdint>
#include <string_view>

#include "convoy/farm/experiments/random/philox.h"

namespace convoy::experiments {

enum class Stream : uint8_t { Teacher = 1, Data = 2, Guess = 3, DescentInit = 4, GuessSum = 5 };

// The conversion from random words to normals. Both precisions give the same bits on every CPU.
enum class Precision : uint8_t {
  Exact,  // Philox4x32-10; error of a normal x is at most 3e-6 (1 + |x|)
  Fast,   // fewer rounds and shorter polynomials; passes statistical tests
};

// `mode` "fast" is Fast, any other text is Exact.
inline Precision precision_of(std::string_view mode) {
  return mode == "fast" ? Precision::Fast : Precision::Exact;
}

// A slot number holds 24 bits for the block; a block has four slots.
inline constexpr uint32_t kSlotsPerBlock = 4;
// Packed normals: each word makes two.
inline constexpr uint32_t kPackedSlotsPerBlock = 8;
inline constexpr uint32_t kMaxSlots = kSlotsPerBlock << 24;
// Increased whenever the address of any number changes; it is part of the counter.
inline constexpr uint32_t kRandomLayout = 2;

// The guess and the slot enter in words 1 and 3 of the counter, which the first round only adds
// (xor) to the multiplied words. So the parts that depend on the guess and on the slot stay
// separate for three rounds, and a kernel computes each part once per guess or once per slot. The
// first round does not mix. Hence 8 rounds mix like 7 rounds with a counter in words 0 and 2, which
// is the least that passes Crush.
constexpr uint32_t philox_rounds(Precision precision) {
  return precision == Precision::Exact ? 10 : 8;
}

// Throws ConfigError unless both seeds fit into 32 bits.
PhiloxKey stream_key(int64_t sweep_seed, int64_t experiment_seed);

constexpr PhiloxWords stream_counter(Stream stream, uint64_t guess, uint32_t block) {
  return {kRandomLayout, static_cast<uint32_t>(guess), static_cast<uint32_t>(guess >> 32),
          block | (static_cast<uint32_t>(stream) << 24)};
}

// The four words of slots 4 * block .. 4 * block + 3.
constexpr PhiloxWords stream_words(PhiloxKey key, Stream stream, uint64_t guess, uint32_t block,
                                   Precision precision) {
  return philox4x32(stream_counter(stream, guess, block), key, philox_rounds(precision));
}

}  // namespace convoy::experiments
