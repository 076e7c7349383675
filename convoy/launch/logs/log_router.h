// SPDX-License-Identifier: Apache-2.0
//
// All streams of all local ranks of one attempt: into files, onto the console by whole lines, and
// into a memory of the last lines for the report. Driven by the launcher's poll loop, one thread;
// never blocks on the console. A log disk or a console that fails costs one warning, never the job.
// SIGPIPE must be blocked or ignored.
#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

class LogRouter {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes the files. Throws nothing for a file that can not be made: that is a warning.
  explicit LogRouter(const LogOptions& options);
  // As close(), but gives a console that takes nothing one second.
  ~LogRouter();
  LogRouter(const LogRouter&) = delete;
  LogRouter& operator=(const LogRouter&) = delete;

  // Bytes as the rank wrote them, cut anywhere. Blocks on the disk only.
  void take(int local_rank, Stream stream, std::string_view bytes);
  // False while the console is behind: the stream should not be read then, so that the rank waits
  // and memory stays bounded. take() works all the same.
  bool accepts(int local_rank, Stream stream) const;
  // The end of both streams of a rank: unfinished lines are completed.
  void finish(int local_rank);
  // A line that the rank did not write itself: into its file of the Convoy layout only.
  void note(int local_rank, std::string_view line);

  // For the poll loop: when handle_deadline() is due although nothing was read, ...
  std::optional<Clock::time_point> next_deadline() const;
  // ... and descriptors to wait for POLLOUT on, after which it is due too; -1 = none.
  std::array<int, 2> waiting_consoles() const;
  // Writes what is due and what the console did not take before. Cheap; call it after every wait.
  void handle_deadline();

  // Blocks until all that was taken is on the console, or until `interrupt` (a descriptor, -1 =
  // none) is readable. To be called before anybody else writes a report to the console.
  void close(int interrupt = -1);

  // The last lines of both streams, up to 20, an unfinished one too.
  std::string last_lines(int local_rank) const;
  // The file that a person should read about this rank; empty = there is none.
  const std::filesystem::path& file(int local_rank) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::launch
