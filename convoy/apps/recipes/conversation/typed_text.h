// SPDX-License-Identifier: Apache-2.0
//
// The texts that a person types into a conversation: lines, or several lines between two """. On a
// terminal Ctrl-C is a key of the conversation.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy::recipes {

// Returns true once after Ctrl-C, however often it was pressed. Returns false while no InterruptKey
// exists.
bool take_interrupt();

// During its lifetime Ctrl-C does not end the process but is reported by take_interrupt(). It also
// interrupts TypedText while that waits or is about to wait. Only one object at a time in a
// process. Throws IoError.
class InterruptKey {
 public:
  InterruptKey();
  ~InterruptKey();
  InterruptKey(const InterruptKey&) = delete;
  InterruptKey& operator=(const InterruptKey&) = delete;

 private:
  Descriptor event_;
  struct sigaction before_ {};
};

class TypedText {
 public:
  explicit TypedText(bool on_terminal) : shows_prompts_(on_terminal) {}

  // Returns the next line, or the lines between """ without these quotes. Returns nothing at the
  // end of input. Blocks. Throws IoError.
  std::optional<std::string> next();

 private:
  enum class Read { Line, Interrupt, End };
  Read next_line(const char* prompt, std::string& line);
  Read read_line(std::string& line);
  Read take(size_t end, size_t next, std::string& line);

  bool shows_prompts_;
  std::string pending_;
};

}  // namespace convoy::recipes
