// SPDX-License-Identifier: Apache-2.0
//
// The signals of a launcher as a stream of numbers, for as long as the object lives.
#pragma once

#include <signal.h>

#include <optional>

#include "convoy/launch/descriptor.h"

namespace convoy::launch {

class SignalStream {
 public:
  // TERM, INT, HUP, QUIT, USR1, USR2 and PIPE (a console that went away) are read, no longer acted upon. Throws IoError.
  SignalStream();
  ~SignalStream();  // as before
  SignalStream(const SignalStream&) = delete;
  SignalStream& operator=(const SignalStream&) = delete;

  int descriptor() const { return stream_.get(); }
  std::optional<int> next();  // does not block
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t before_;
  Descriptor stream_;
};

}  // namespace convoy::launch
