// SPDX-License-Identifier: Apache-2.0
//
// The crates that draw, or their absence: drawing.cpp or drawing_absent.cpp (CONVOY_WHOLE).
#pragma once

#include <string>

namespace convoy::pictures {

// False in a build without them.
bool has_drawing();

enum class Drawn { Png, Pdf, UnknownLetters };

// Only where has_drawing().
std::string drawn(Drawn what, const std::string& svg);

}  // namespace convoy::pictures
