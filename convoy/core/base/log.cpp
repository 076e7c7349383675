// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/log.h"

#include <unistd.h>

#include <utility>

namespace convoy {

Log::Log(LogLevel level, std::string prefix) : level_(level), prefix_(std::move(prefix)) {}

void Log::info(std::string_view message) const {
  if (level_ != LogLevel::Quiet) line(message);
}

void Log::detail(std::string_view message) const {
  if (level_ == LogLevel::Verbose) line(message);
}

void Log::warning(std::string_view message) const { line(fmt::format("warning: {}", message)); }

void Log::line(std::string_view message) const {
  const std::string text = fmt::format("{}{}\n", prefix_, message);
  // One write call keeps lines of several threads and ranks whole.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace convoy
