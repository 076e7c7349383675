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

// Environment variable with the start of the command, in seconds since 1970.
constexpr const char* kCommandStart = "CONVOY_COMMAND_START";

class TemplateClock {
 public:
  // Finds the calls of strftime_now in the source of a template.
  void add(std::string_view source);

  bool is_read() const { return is_read_; }
  // Stops the clock at the start of the command. The first process of the command passes this time
  // to all its other processes (kCommandStart).
  void stop_at_command_start();
  void stop_at(int64_t seconds) { stopped_s_ = seconds; }  // seconds since 1970
  void go() { stopped_s_.reset(); }
  int64_t seconds() const;  // the time for a conversation that is read now, since 1970

  // The time as the template writes it: `strftime_now("%Y-%m-%d") is 2026-11-28`. Two clocks with
  // equal words give equal texts. Empty when no template reads the clock, or the clock is not
  // stopped.
  std::string words() const;

 private:
  std::string formats_;  // formats, each between two NUL characters
  bool is_read_ = false;
  bool needs_seconds_ = false;  // true: the source computes a format, so every second may matter
  std::optional<int64_t> stopped_s_;
};

}  // namespace convoy::text
