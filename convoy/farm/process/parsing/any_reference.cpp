// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/any_reference.h"

#include <optional>

namespace convoy::process {

using answers::Verdict;

Verdict verdict_on(std::span<const std::string> golds, const std::string& prediction) {
  std::optional<Verdict> best;
  for (const std::string& gold : golds) {
    const Verdict verdict = answers::check_answer(gold, prediction);
    if (verdict == Verdict::Yes) return verdict;
    best = best && *best != verdict ? Verdict::Unknown : verdict;
  }
  return best.value_or(Verdict::Unknown);
}

}  // namespace convoy::process
