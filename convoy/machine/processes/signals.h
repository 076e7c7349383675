// SPDX-License-Identifier: Apache-2.0
//
// The signals of a launcher as a stream of numbers, for as long as the object lives.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

class SignalStream {
 public:
  // `signals`, USR1 and USR2 are read and no longer have their default action; an ignored HUP stays
  // ignored, as nohup sets it. PIPE and XFSZ (a console that went away, a file that may not grow)
  // do nothing. CHLD gets its default action: where it is ignored, children leave no exit code.
  // Throws IoError.
  explicit SignalStream(const std::vector<int>& signals);
  // Restores the signals. A signal that was not read is dropped, unless an outer stream of this
  // thread reads it.
  ~SignalStream();
  SignalStream(const SignalStream&) = delete;
  SignalStream& operator=(const SignalStream&) = delete;

  int descriptor() const { return stream_.get(); }
  std::optional<int> next();  // does not block
  // Reads all pending signals. True once one of the constructor's `signals` has been read here.
  // Does not block.
  bool asked_to_stop();
  // The mask for programs that are started now: the mask from before, but without the signals that
  // are read here.
  const sigset_t& mask_for_ranks() const { return for_ranks_; }

 private:
  sigset_t before_, for_ranks_;
  struct sigaction child_before_ = {};
  Descriptor stream_;
  std::vector<int> signals_;
  bool asked_to_stop_ = false;
};

std::vector<int> default_stop_signals();  // TERM, INT, HUP, QUIT
// "SIGTERM,SIGINT" -> {15, 2}. Throws ConfigError on a name that is no signal, or a signal that no
// program can handle.
std::vector<int> parse_signals(const std::string& names);
bool contains(const std::vector<int>& signals, int signal);
// 15 -> "SIGTERM".
std::string signal_name(int signal);

}  // namespace convoy::processes
