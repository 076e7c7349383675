// SPDX-License-Identifier: Apache-2.0
//
// Nesting depth of foreign JSON and the ends of its objects, determined before it is parsed.
// nlohmann's parser keeps its stack on the heap, but dump() and copies recurse: a hundred thousand
// brackets would crash the process.
#pragma once

#include <cstddef>
#include <string_view>

namespace convoy {

constexpr size_t kMostJsonLevels = 256;

// True from the first bracket beyond `most_levels` on; text that is no JSON counts as far as its
// brackets go.
bool nested_deeper(std::string_view json, size_t most_levels = kMostJsonLevels);

// Position of the brace that closes the object at `at`; npos: there is no such brace.
size_t closing_brace(std::string_view json, size_t at);

}  // namespace convoy
