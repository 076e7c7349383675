// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "convoy/data/answers/equivalence.h"

namespace convoy::process {

// Returns Yes if one reference matches, else the verdict on which all references agree. Returns
// Unknown if they disagree, or if there is no reference. Thread-safe.
answers::Verdict verdict_on(std::span<const std::string> golds, const std::string& prediction);

}  // namespace convoy::process
