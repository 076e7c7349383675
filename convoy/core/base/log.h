// SPDX-License-Identifier: Apache-2.0
//
// Messages for people, on stderr. stdout carries data only.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace convoy {

enum class LogLevel { Quiet, Normal, Verbose };

// Passed as an argument, never global; may be copied freely. Thread-safe: each message is one write
// of whole lines.
class Log {
 public:
  explicit Log(LogLevel level = LogLevel::Normal, std::string prefix = {});

  void info(std::string_view message) const;     // shown unless Quiet
  void detail(std::string_view message) const;   // shown when Verbose
  void warning(std::string_view message) const;  // always shown, as "warning: ..."
  LogLevel level() const { return level_; }

 private:
  void line(std::string_view message) const;

  LogLevel level_;
  std::string prefix_;
};

}  // namespace convoy
