// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/bytes_text.h"

#include <fmt/format.h>

namespace convoy {

std::string bytes_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < (1 << 20)) return fmt::format("{:.0f} KiB", size / 1024);
  const double mebibytes = size / (1 << 20);
  if (mebibytes < 1000) return fmt::format("{:.0f} MiB", mebibytes);
  return fmt::format("{:.2f} GiB", mebibytes / 1024);
}

}  // namespace convoy
