// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/seed.h"

#include <array>

#include "convoy/core/base/hash.h"

namespace convoy::device {

uint64_t draw_key(const SeedPoint& point) {
  const std::array<uint64_t, 4> words = {
      static_cast<uint64_t>(point.seed), static_cast<uint64_t>(point.epoch),
      static_cast<uint64_t>(point.step), static_cast<uint64_t>(point.micro_batch)};
  return mix_seed(words);
}

}  // namespace convoy::device
