// SPDX-License-Identifier: Apache-2.0
//
// Compares a predicted answer with the reference. Thread-safe; work is bounded by steps, not by
// time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::answers {

// Unknown: one side could not be read, or the step budget ended first. Unknown is not No.
enum class Verdict { Yes, No, Unknown };
std::string_view verdict_name(Verdict verdict);  // "yes", "no", "unknown"

struct CheckLimits {
  int64_t steps = 20'000;
  double relative_tolerance = 1e-6;  // for decimals that represent rounded values
};

// Compares two whole texts or bare answers; it extracts the answer from each side first.
// Asymmetric, like Math-Verify: a prediction may be more specific than the reference, but not less.
Verdict check_answer(std::string_view gold, std::string_view prediction,
                     const CheckLimits& limits = {});

// Groups answers for a majority vote. Returns the class number of each answer, counted from 0 in
// order of appearance; equivalent answers have the same number. An empty answer gets -1 and does
// not vote. `answers`: bare answers, as extract_answer() returns them.
std::vector<int> equivalence_classes(std::span<const std::string> answers,
                                     const CheckLimits& limits = {});

}  // namespace convoy::answers
