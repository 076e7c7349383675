// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/shared_flags.h"

#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::experiments {

std::vector<int64_t> seeds_of(const SeedFlags& flags, int64_t sweep_seed) {
  std::vector<int64_t> seeds = sweep::chosen_seeds(flags.seeds, flags.num_seeds);
  // Refuses values that are no seeds.
  for (const int64_t seed : seeds) stream_key(sweep_seed, seed);
  return seeds;
}

}  // namespace convoy::experiments
