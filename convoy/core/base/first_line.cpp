// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/first_line.h"

#include <fstream>

namespace convoy {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace convoy
