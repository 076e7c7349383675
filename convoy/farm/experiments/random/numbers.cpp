// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/random/numbers.h"

#include <algorithm>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/tile_fillers.h"

namespace convoy::experiments {

CONVOY_DECLARE_AT_EACH_LEVEL(TileFillers, kTileFillers)

namespace {

const TileFillers& fillers(CpuLevel level) {
  return of_cpu_level(level, scalar::kTileFillers, avx2::kTileFillers, avx512::kTileFillers);
}

void fill_tile(const Address& address, uint32_t num_slots, float* out, CpuLevel level,
               bool normal) {
  const uint32_t num_blocks = (num_slots + kSlotsPerBlock - 1) / kSlotsPerBlock;
  const auto fill = fillers(level).fill[static_cast<int>(address.precision)][normal ? 1 : 0];
  const auto lower = static_cast<uint32_t>(address.guess);
  const AddressTables tables(address.key, address.stream, address.precision, address.guess,
                             num_blocks);
  if (lower <= ~uint32_t{0} - (kTileGuesses - 1)) {
    fill(tables, lower, num_slots, out);
    return;
  }
  // The guesses of the tile have two different upper words.
  const uint32_t before = ~uint32_t{0} - lower + 1;
  const AddressTables next(address.key, address.stream, address.precision, address.guess + before,
                           num_blocks);
  std::vector<float> other(size_t{num_slots} * kTileGuesses);
  fill(tables, lower, num_slots, out);
  fill(next, lower, num_slots, other.data());
  for (size_t slot = 0; slot < num_slots; ++slot)
    std::copy_n(&other[slot * kTileGuesses + before], kTileGuesses - before,
                out + slot * kTileGuesses + before);
}

// Fills the numbers of one guess from a tile of the scalar kernel.
void fill_one(const Address& address, uint32_t first_slot, std::span<float> out, bool normal) {
  const auto num_slots = first_slot + static_cast<uint32_t>(out.size());
  CONVOY_INVARIANT(num_slots <= kMaxSlots, "{} slots", num_slots);
  std::vector<float> tile(size_t{num_slots} * kTileGuesses);
  fill_tile(address, num_slots, tile.data(), CpuLevel::Scalar, normal);
  for (size_t at = 0; at < out.size(); ++at) out[at] = tile[(first_slot + at) * kTileGuesses];
}

}  // namespace

void fill_normals(const Address& address, uint32_t first_slot, std::span<float> out) {
  fill_one(address, first_slot, out, true);
}

void fill_packed_normals(const Address& address, uint32_t first_slot, std::span<float> out) {
  CONVOY_INVARIANT(address.precision == Precision::Fast, "packed normals in `exact`");
  const auto num_slots = first_slot + static_cast<uint32_t>(out.size());
  const uint32_t num_blocks = (num_slots + kPackedSlotsPerBlock - 1) / kPackedSlotsPerBlock;
  const AddressTables tables(address.key, address.stream, address.precision, address.guess,
                             num_blocks);
  std::vector<float> slots(size_t{num_blocks} * kPackedSlotsPerBlock);
  scalar::fill_packed_blocks(tables, static_cast<uint32_t>(address.guess), slots.data());
  std::copy_n(slots.begin() + first_slot, out.size(), out.begin());
}

void fill_uniforms(const Address& address, uint32_t first_slot, std::span<float> out) {
  fill_one(address, first_slot, out, false);
}

void fill_words(const Address& address, uint32_t first_slot, std::span<uint32_t> out) {
  for (size_t at = 0; at < out.size(); ++at) {
    const auto slot = first_slot + static_cast<uint32_t>(at);
    out[at] = stream_words(address.key, address.stream, address.guess, slot / kSlotsPerBlock,
                           address.precision)[slot % kSlotsPerBlock];
  }
}

void fill_normal_tile(const Address& address, uint32_t num_slots, float* out, CpuLevel level) {
  fill_tile(address, num_slots, out, level, true);
}

void fill_uniform_tile(const Address& address, uint32_t num_slots, float* out, CpuLevel level) {
  fill_tile(address, num_slots, out, level, false);
}

}  // namespace convoy::experiments
