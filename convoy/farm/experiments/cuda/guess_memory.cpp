// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/guess_memory.h"

#include <vector>

#include "convoy/farm/experiments/cuda/launch_parts.h"

namespace convoy::experiments::cuda {
namespace {

__int128 of_digits(const uint64_t (&digits)[3]) {
  return (static_cast<__int128>(digits[2]) << 64) + (static_cast<__int128>(digits[1]) << 32) +
         static_cast<__int128>(digits[0]);
}

}  // namespace

void write_slots(const DeviceUse& use, const Buffer& slots, const AddressTables& tables) {
  std::vector<SlotWords> words;
  for (const BlockWords& block : tables.blocks)
    words.push_back({.first = static_cast<uint32_t>(block.first),
                     .third = static_cast<uint32_t>(block.third),
                     .fourth = static_cast<uint32_t>(block.fourth)});
  slots.write(use, words.data(), words.size() * sizeof(SlotWords));
}

void add_to_tally(const DeviceUse& use, const Buffer& sums, sweep::Tally& tally) {
  std::vector<LossSums> slots(kSumSlots);
  sums.read(use, slots.data(), slots.size() * sizeof(LossSums));
  for (const LossSums& slot : slots) {
    tally.accepted += static_cast<int64_t>(slot.accepted);
    tally.non_finite += static_cast<int64_t>(slot.non_finite);
    tally.loss.add(sweep::FixedSum::of_units(of_digits(slot.loss)));
    tally.loss_squared.add(sweep::FixedSum::of_units(of_digits(slot.loss_squared)));
  }
}

}  // namespace convoy::experiments::cuda
