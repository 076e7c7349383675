// SPDX-License-Identifier: Apache-2.0
//
// The time that strftime_now has in a chat template: one instant for a whole command, or one for
// each conversation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::text {

// Variable of the environment: seconds since 1970.
constexpr const char* kCommandStart = "CONVOY_COMMAND_START";

class TemplateClock {
 public:
  // Adds the calls of strftime_now in the source of a template.
  void add(std::string_view source);

  bool is_read() const { return is_read_; }
  // At the start of the command, which its front tells all its processes (kCommandStart).
  void stop_at_command_start();
  void stop_at(int64_t seconds) { stopped_s_ = seconds; }  // since 1970
  void go() { stopped_s_.reset(); }
  int64_t seconds() const;  // the instant of a conversation that is read now

  // The time as the template writes it: `strftime_now("%Y-%m-%d") is 2026-11-28`. Two clocks with
  // equal words give equal texts. Empty when the clock is not read, or goes.
  std::string words() const;

 private:
  std::string formats_;  // each between two NULs
  bool is_read_ = false;
  bool needs_seconds_ = false;  // a format is not written in the source
  std::optional<int64_t> stopped_s_;
};

}  // namespace convoy::text
