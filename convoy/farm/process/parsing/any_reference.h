// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "convoy/data/answers/equivalence.h"

namespace convoy::process {

// Yes when one reference matches, else the verdict that all references agree on. Unknown when they
// disagree, or without any. Thread-safe.
answers::Verdict verdict_on(std::span<const std::string> golds, const std::string& prediction);

}  // namespace convoy::process
