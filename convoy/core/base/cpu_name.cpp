// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cpu_name.h"

#include <fstream>

namespace convoy {

std::string cpu_name(const std::filesystem::path& proc) {
  std::ifstream file(proc / "cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace convoy
