// SPDX-License-Identifier: Apache-2.0
//
// Drawing with Rust crates (drawing.cpp), or a stand-in for builds without them
// (drawing_absent.cpp); CONVOY_WHOLE chooses.
#pragma once

#include <string>

namespace convoy::pictures {

// False in a build without the crates.
bool has_drawing();

enum class Drawn { Png, Pdf, UnknownLetters };

// Call it only when has_drawing() is true.
std::string drawn(Drawn what, const std::string& svg);

}  // namespace convoy::pictures
