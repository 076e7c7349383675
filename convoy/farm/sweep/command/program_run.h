// SPDX-License-Identifier: Apache-2.0
//
// Runs one program to its end and catches its output.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::sweep {

struct OutputLine {
  std::string_view text;  // without the end of the line
  bool too_long = false;  // only the beginning of the line was kept
  bool ended = true;      // false: the program ended within the line
};

struct ProgramEnd {
  int exit_code = 0;
  int signal = 0;          // 0 = ended by itself
  bool timed_out = false;  // killed at its time limit
  bool unwanted = false;   // `take` returned false for a line
  double seconds = 0;
  std::string errors_tail;
};

constexpr size_t kProgramTailBytes = 2048;  // bytes of stderr that are kept

// Writes a program's errors to stderr, and keeps the last part of them in `tail`.
void pass_errors_on(std::string_view text, std::string& tail);

// Runs `program` (argv; looked up in PATH unless it has a '/') in a session of its own. The program
// has no stdin; its stderr is passed on. When it ends, or after `timeout_seconds` (0 = never),
// every process that is left in its group is killed. The kernel kills the program when this process
// dies. Blocks. Throws ConfigError if the program cannot be started, and IoError. `take` is called
// with each line of stdout as it arrives. If `take` returns false, the program is killed and `take`
// is not called again. Carriage returns end lines too, because progress bars write them. From a
// line of more than 16 MiB, `take` gets only the beginning.
ProgramEnd run_program(const std::vector<std::string>& program,
                       const std::map<std::string, std::string>& environment,
                       double timeout_seconds,
                       const std::function<bool(const OutputLine& line)>& take = {});

}  // namespace convoy::sweep
