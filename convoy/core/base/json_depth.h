// SPDX-License-Identifier: Apache-2.0
//
// Nesting depth of foreign JSON and the ends of its objects, determined before the text is parsed.
// nlohmann's parser keeps its stack on the heap, but dump() and copies recurse: a hundred thousand
// brackets would crash the process.
#pragma once

#include <cstddef>
#include <string_view>

namespace convoy {

constexpr size_t kMostJsonLevels = 256;

// True when brackets are nested deeper than `most_levels`. The text need not be valid JSON: only
// its brackets and strings count.
bool nested_deeper(std::string_view json, size_t most_levels = kMostJsonLevels);

// Position of the brace that closes the object at `at`; npos: there is no such brace.
size_t closing_brace(std::string_view json, size_t at);

}  // namespace convoy
