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

// The places in `first` of one longest common subsequence, in order: of several that one which
// going back through the table of lengths finds when it leaves out a token of `second` only where
// that keeps more (as rouge_score does).
std::vector<size_t> common_subsequence(std::span<const int32_t> first,
                                       std::span<const int32_t> second);

}  // namespace convoy::evaluate
