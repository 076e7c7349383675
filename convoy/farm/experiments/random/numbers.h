// SPDX-License-Identifier: Apache-2.0
//
// Random numbers by address (stream.h): for a single guess (teachers, data, initial values), and in
// tiles of sixteen guesses for kernels with one guess per lane. Thread-safe. Same bits on every
// CPU.
//
// A word becomes the uniform number float(int32(word | 1)) / 2^31. Box-Muller makes two normals
// from words 0 and 2 of a block, and two from words 1 and 3 (normal_transform.inl holds the
// arithmetic).
#pragma once

#include <cstdint>
#include <span>

#include "convoy/farm/experiments/random/cpu_level.h"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments {

struct Address {
  PhiloxKey key = {};
  Stream stream = Stream::Guess;
  Precision precision = Precision::Exact;
  uint64_t guess = 0;
};

// Fills slots first_slot, first_slot + 1, ... of one guess. Uses no vector instructions.
void fill_normals(const Address& address, uint32_t first_slot, std::span<float> out);
// Uniform numbers in [-1, 1], never 0, from the same words.
void fill_uniforms(const Address& address, uint32_t first_slot, std::span<float> out);
// Normals of Precision::Fast at half the cost: kPackedSlotsPerBlock per block. They differ from the
// numbers of fill_normals(). `address.precision` must be Fast.
void fill_packed_normals(const Address& address, uint32_t first_slot, std::span<float> out);
// The raw words, for choices and permutations.
void fill_words(const Address& address, uint32_t first_slot, std::span<uint32_t> out);

inline constexpr uint32_t kTileGuesses = 16;

// out[slot * 16 + lane] = slot `slot` of guess address.guess + lane, for slots 0 .. num_slots - 1;
// `out` holds num_slots * 16 floats, aligned to 64 bytes. All sixteen guesses are written.
// Throws StateError for a level this machine cannot run.
void fill_normal_tile(const Address& address, uint32_t num_slots, float* out,
                      CpuLevel level = best_cpu_level());
void fill_uniform_tile(const Address& address, uint32_t num_slots, float* out,
                       CpuLevel level = best_cpu_level());

}  // namespace convoy::experiments
