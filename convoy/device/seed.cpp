// SPDX-License-Identifier: Apache-2.0
#include "convoy/device/seed.h"

#include <ATen/CPUGeneratorImpl.h>

#include "convoy/base/hash.h"

namespace convoy::device {

void seed_generator(const SeedPoint& point) {
  const std::array<uint64_t, 4> words = {
      static_cast<uint64_t>(point.seed), static_cast<uint64_t>(point.epoch),
      static_cast<uint64_t>(point.step), static_cast<uint64_t>(point.micro_batch)};
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(mix_seed(words));
}

}  // namespace convoy::device
