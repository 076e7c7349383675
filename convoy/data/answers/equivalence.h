// SPDX-License-Identifier: Apache-2.0
//
// Whether a predicted answer means the same as the reference. Thread-safe, without a clock: work is
// bounded by steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::answers {

// Unknown: one side could not be read, or the step budget ended first. It is not No.
enum class Verdict { Yes, No, Unknown };
std::string_view verdict_name(Verdict verdict);  // "yes", "no", "unknown"

struct CheckLimits {
  int64_t steps = 20'000;
  double relative_tolerance = 1e-6;  // of decimals that stand for rounded values
};

// `gold` and `prediction`: whole texts or bare answers; the answer of each is extracted first.
// Asymmetric, as Math-Verify is: what the reference leaves open the prediction may say, not the
// other way round.
Verdict check_answer(std::string_view gold, std::string_view prediction,
                     const CheckLimits& limits = {});

// For votes: of every answer the number of its class, from 0 in the order in which classes appear;
// answers that mean the same, in whatever form, share one. -1: an empty answer, which votes for
// nothing. Bare answers, as extract_answer() gives.
std::vector<int> equivalence_classes(std::span<const std::string> answers,
                                     const CheckLimits& limits = {});

}  // namespace convoy::answers
