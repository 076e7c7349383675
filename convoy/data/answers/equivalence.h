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

// `gold` and `prediction`: whole texts or bare answers; the answer of each is extracted first.
// Asymmetric, as Math-Verify is: a prediction may be more specific than the reference, but not
// less.
Verdict check_answer(std::string_view gold, std::string_view prediction,
                     const CheckLimits& limits = {});

// Groups answers for votes. Returns the class number of each answer, from 0 in order of appearance;
// equivalent answers share a class. -1: an empty answer, which does not vote. Takes bare answers,
// as extract_answer() returns.
std::vector<int> equivalence_classes(std::span<const std::string> answers,
                                     const CheckLimits& limits = {});

}  // namespace convoy::answers
