// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/random/address_tables.h"

namespace convoy::experiments {

AddressTables::AddressTables(PhiloxKey key, Stream stream, Precision precision, uint64_t guess,
                             uint32_t num_blocks) {
  const uint32_t rounds = philox_rounds(precision);
  for (uint32_t round = 0; round < rounds; ++round) {
    const PhiloxKey round_key = philox_round_key(key, round);
    keys[round][0] = round_key[0];
    keys[round][1] = round_key[1];
  }
  last_keys[0] = keys[rounds - 1][0] << 32;
  last_keys[1] = keys[rounds - 1][1] << 32;

  // These parts of the products depend on neither guess nor block.
  const PhiloxWords counter = stream_counter(stream, guess, 0);
  const uint64_t even = uint64_t{kPhiloxMultipliers[0]} * counter[0];
  const uint64_t odd = uint64_t{kPhiloxMultipliers[1]} * counter[2];
  guess_first = (odd >> 32) ^ keys[0][0];
  guess_third = static_cast<uint32_t>(even) ^ keys[1][1];
  blocks.resize(num_blocks);
  for (uint32_t at = 0; at < num_blocks; ++at) {
    // Round 1 computes c2 (`third`). Round 2 multiplies it, which gives c0 (`first`) and c1. Round
    // 3 multiplies that c0.
    const uint32_t third = static_cast<uint32_t>(even >> 32) ^
                           stream_counter(stream, guess, at)[3] ^ static_cast<uint32_t>(keys[0][1]);
    const uint64_t product = uint64_t{kPhiloxMultipliers[1]} * third;
    const uint32_t first = static_cast<uint32_t>(product >> 32) ^ static_cast<uint32_t>(odd) ^
                           static_cast<uint32_t>(keys[1][0]);
    const uint64_t next = uint64_t{kPhiloxMultipliers[0]} * first;
    blocks[at].first = static_cast<uint32_t>(product) ^ keys[2][0];
    blocks[at].third = (next >> 32) ^ keys[2][1];
    blocks[at].fourth = static_cast<uint32_t>(next) ^ keys[3][1];
  }
}

}  // namespace convoy::experiments
