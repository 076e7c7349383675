// SPDX-License-Identifier: Apache-2.0
//
// Groups of sixteen guesses (guess_kernels.h) over Lanes, for every set of powers.
// Needs Lanes, philox_lanes.inl, normal_transform.inl.
#include "convoy/farm/experiments/ssm/guess_vectors.inl"

template <Precision kPrecision, uint32_t kPowers>
void guess_power_sums(const AddressTables& tables, uint32_t num_slots, const uint32_t* guesses,
                      float* sums) {
  for (uint32_t group = 0; group < kGroupGuesses; group += Lanes::kGuesses) {
    GuessVector<kPrecision, kPowers> vector;
    vector.sum_slots(tables, tables.blocks.data(), num_slots, guesses + group);
    for (uint32_t power = 0; power < PowerList<kPowers>::kLargest; ++power)
      Lanes::store_sums(sums + power * kGroupGuesses + group, vector.total(power));
  }
}

template <Precision kPrecision, uint32_t... kAt>
constexpr void fill_kernels(PowerSums (&row)[GuessKernels::kSets],
                            std::integer_sequence<uint32_t, kAt...>) {
  ((row[kAt] = guess_power_sums<kPrecision, kAt + 1>), ...);
  row[15] = guess_power_sums<kPrecision, (1u << 6) - 1>;
  row[16] = guess_power_sums<kPrecision, (1u << 8) - 1>;
  row[17] = guess_power_sums<kPrecision, (1u << 16) - 1>;
}

constexpr GuessKernels make_kernels() {
  GuessKernels table = {};
  fill_kernels<Precision::Exact>(table.sums[0], std::make_integer_sequence<uint32_t, 15>());
  fill_kernels<Precision::Fast>(table.sums[1], std::make_integer_sequence<uint32_t, 15>());
  return table;
}
