// SPDX-License-Identifier: Apache-2.0
//
// Rotary embeddings that a GGUF file holds as divisors of the frequencies: Llama 3's rule
// (rope_freqs.weight) and Phi's longrope, which has one list for rows of up to the original number
// of positions and one for longer rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace convoy::gguf {

struct Llama3Rope {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_positions = 8192;
};

// One divisor for each pair of a head's features, as llama.cpp's converter writes them.
std::vector<float> rope_divisors(const Llama3Rope& rope, double theta, int64_t head_dim);

// Finds the rule that gives these divisors, trying `told` first. Returns nullopt when no rule gives
// them.
std::optional<Llama3Rope> rule_of_divisors(std::span<const float> divisors, double theta,
                                           const std::optional<Llama3Rope>& told = {});

// Convoy's own key for the four numbers, in the order of Llama3Rope. llama.cpp does not read it.
// Without this key the numbers can be found only from two divisors between the ends, which small
// heads may lack.
inline constexpr const char* kRopeRuleKey = "convoy.llama3_rope";

inline constexpr const char* kLlama3Divisors = "rope_freqs.weight";
inline constexpr const char* kShortDivisors = "rope_factors_short.weight";
inline constexpr const char* kLongDivisors = "rope_factors_long.weight";

}  // namespace convoy::gguf
