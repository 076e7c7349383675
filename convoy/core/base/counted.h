// SPDX-License-Identifier: Apache-2.0
//
// Counts in messages, each with its noun in the singular or plural.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy {

// "1 cell", "0 cells". `plural`: the plural form when it is not the noun with an s.
std::string counted(int64_t count, std::string_view noun, std::string_view plural = {});

}  // namespace convoy
