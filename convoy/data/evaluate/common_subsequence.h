// SPDX-License-Identifier: Apache-2.0
//
// Longest common subsequences of token numbers. Work grows with n * m / 64, memory with n and m.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace convoy::evaluate {

size_t common_subsequence_length(std::span<const int32_t> first, std::span<const int32_t> second);

// Positions in `first` of one longest common subsequence, in order. If there are several, it
// returns the same one as rouge_score: the one found by going back through the table of lengths,
// which skips a token of `second` only when that keeps a longer subsequence.
std::vector<size_t> common_subsequence(std::span<const int32_t> first,
                                       std::span<const int32_t> second);

}  // namespace convoy::evaluate
