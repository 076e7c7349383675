// SPDX-License-Identifier: Apache-2.0
//
// One program from start to end, its output caught.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::sweep {

struct OutputLine {
  std::string_view text;  // without its end
  bool too_long = false;  // it is the beginning of a line that was not kept
  bool ended = true;      // false: the program ended within it
};

struct ProgramEnd {
  int exit_code = 0;
  int signal = 0;          // 0 = it ended by itself
  bool timed_out = false;  // it was killed for its time
  bool unwanted = false;   // `take` was false for one of its lines
  double seconds = 0;
  std::string errors_tail;
};

constexpr size_t kProgramTailBytes = 2048;  // how much of stderr is kept

// Writes a program's errors to stderr, and keeps the last of them in `tail`.
void pass_errors_on(std::string_view text, std::string& tail);

// Runs `program` (argv; looked up in PATH unless it has a '/') in a session of its own, without a
// stdin, and passes its stderr on. Processes left in its group are killed when it ends, or after
// `timeout_seconds` (0 = never). The kernel kills it when this process dies. Blocks. Throws
// ConfigError when it cannot be started, IoError. `take`: called with each line of stdout as it
// comes; false kills the program, and is the last call. Carriage returns end lines too, as progress
// bars write them. A line of more than 16 MiB is cut, and `take` gets the beginning.
ProgramEnd run_program(const std::vector<std::string>& program,
                       const std::map<std::string, std::string>& environment,
                       double timeout_seconds,
                       const std::function<bool(const OutputLine& line)>& take = {});

}  // namespace convoy::sweep
