// SPDX-License-Identifier: Apache-2.0
//
// Formats the numbers and texts of result files.
#pragma once

#include <string>

namespace convoy::sweep {

struct NamedFile {
  std::string name;
  std::string text;
};

// The shortest text that reads back as the same number; "nan" for NaN.
std::string number_text(double value);

}  // namespace convoy::sweep
