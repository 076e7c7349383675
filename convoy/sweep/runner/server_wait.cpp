// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/server_wait.h"

#include <fmt/format.h>

namespace convoy::sweep {
namespace {

std::string time_text(std::chrono::seconds time) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time);
  const std::chrono::seconds rest = time - minutes;
  if (minutes.count() == 0) return fmt::format("{} s", rest.count());
  if (rest.count() == 0) return fmt::format("{} min", minutes.count());
  return fmt::format("{} min {} s", minutes.count(), rest.count());
}

}  // namespace

std::string server_wait_text(std::chrono::milliseconds left) {
  return fmt::format("waiting for it, {} at most, {} more", time_text(kServerLimit),
                     time_text(std::chrono::round<std::chrono::seconds>(left)));
}

}  // namespace convoy::sweep
