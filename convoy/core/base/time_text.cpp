// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/time_text.h"

#include <array>

namespace convoy {
namespace {

std::string formatted(const std::tm& parts, const char* format) {
  std::array<char, 256> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), format, &parts));
}

}  // namespace

std::string utc_time_text(std::time_t seconds, const char* format) {
  std::tm parts{};
  return formatted(*::gmtime_r(&seconds, &parts), format);
}

std::string local_time_text(std::time_t seconds, const char* format) {
  std::tm parts{};
  return formatted(*::localtime_r(&seconds, &parts), format);
}

}  // namespace convoy
