// SPDX-License-Identifier: Apache-2.0
//
// Output on its way to one console. Never blocks: the bytes that a console does not take (a stopped
// terminal, a pager) stay in the queue. Lines are written whole. A pipe may have other writers too,
// so it gets pieces of at most PIPE_BUF bytes, which the kernel does not mix, unless one line is
// longer.
#pragma once

#include <string>
#include <string_view>

#include "convoy/core/base/descriptor.h"

namespace convoy::launch {

class ConsoleQueue {
 public:
  static constexpr size_t kBehindBytes = 1 << 20;

  // `descriptor` is not owned. Its flags, which other processes share, are not changed.
  explicit ConsoleQueue(int descriptor);

  // Returns the buffer to which whole lines, '\n' included, are appended. Call flush() afterwards.
  std::string& pending() { return pending_; }
  // Writes as much as the console takes now.
  void flush();

  size_t waiting_bytes() const { return pending_.size() - written_; }
  bool waiting() const { return pending_.size() > written_; }
  bool behind() const { return waiting_bytes() >= kBehindBytes; }
  int descriptor() const { return own_.open() ? own_.get() : shared_; }
  bool terminal() const { return terminal_; }
  // errno of the console's failure, 0 = the console works. A failed console drops its output.
  int failure() const { return failure_; }

 private:
  enum class Kind { File, Pipe, Socket, Terminal };

  size_t next_piece() const;
  void fail(int error);

  int shared_;
  Descriptor own_;  // own open file description, which can be non-blocking
  Kind kind_ = Kind::File;
  bool terminal_ = false;
  std::string pending_;
  size_t written_ = 0;
  int failure_ = 0;
  bool torn_ = false;  // the dropped bytes began in the middle of a line
};

// True when both are the same terminal, pipe, socket or file.
bool same_file(int one, int other);

}  // namespace convoy::launch
