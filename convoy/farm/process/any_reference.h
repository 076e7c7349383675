// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "convoy/data/answers/equivalence.h"

namespace convoy::process {

// Of several references one is enough; none decides what they do not agree on. Unknown without any.
// Thread-safe.
answers::Verdict verdict_on(std::span<const std::string> golds, const std::string& prediction);

}  // namespace convoy::process
