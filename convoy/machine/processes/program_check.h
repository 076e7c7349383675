// SPDX-License-Identifier: Apache-2.0
//
// Finds the reason why a program cannot be started before it is tried: exec itself reports only
// that a file was not found, either the program or the interpreter that its first line names.
#pragma once

#include <filesystem>
#include <string>

namespace convoy::processes {

struct ProgramProblem {
  std::string found;  // one sentence; empty: the program can be started
  std::string to_do;  // one action

  bool any() const { return !found.empty(); }
};

// The file that execvp would run: `program` itself if it has a '/', else the first match in PATH.
// Empty if no folder of PATH has it.
std::filesystem::path program_file(const std::string& program);

// Checks whether a process could run `program`, looked up as execvp does.
ProgramProblem program_problem(const std::string& program);

}  // namespace convoy::processes
