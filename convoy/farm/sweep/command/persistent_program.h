// SPDX-License-Identifier: Apache-2.0
//
// A program that runs for many cells. It reads one line of JSON per cell on its stdin; each line
// has a number `cell`. It answers each line with one line of JSON on its stdout that repeats the
// number as `cell`, or the whole line as `request`. So a surplus or late answer can never be taken
// for the answer to another cell. The program is started at the first cell, and again after it
// crashed, hung or gave any other answer. One thread; SIGPIPE must be ignored.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/processes/child_process.h"

namespace convoy::sweep {

// Limits in seconds; 0 = no limit. The time of a cell begins when the program takes the cell. The
// first cell after a start is taken when the program begins to read, which may be after many
// imports.
struct PersistentLimits {
  double cell_seconds = 0;
  double start_seconds = 0;

  // The limits for a given limit per cell. A start may take 10 minutes, or as long as a cell if
  // that is longer.
  static PersistentLimits of_timeout(double cell_seconds);
};

class PersistentProgram {
 public:
  PersistentProgram(std::vector<std::string> program,
                    std::map<std::string, std::string> environment, PersistentLimits limits);
  ~PersistentProgram();  // ends the program and all processes that it started
  PersistentProgram(const PersistentProgram&) = delete;
  PersistentProgram& operator=(const PersistentProgram&) = delete;

  bool is(const std::vector<std::string>& program,
          const std::map<std::string, std::string>& environment) const {
    return program == program_ && environment == environment_;
  }

  int64_t num_starts() const { return num_starts_; }

  // Returns the answer to `question`, an object without the member `cell`. Blocks. Throws
  // TaskFailure of kind "exit", "crash", "timeout" or "output", and the errors of start_child().
  nlohmann::json ask(const nlohmann::json& question);

 private:
  struct Running {
    processes::ChildProcess process;
    Descriptor input;
    std::string output;  // output after the last line
    std::string errors_tail;
    bool answered = false;                   // it has answered at least once
    std::optional<processes::ChildEnd> end;  // set once it was reaped
  };
  enum class Turn { Answer, Ended, TimedOut, NeverRead };

  void start();
  bool said_something_unasked();
  void check_cell(const nlohmann::json& answer);
  Turn exchange_lines(const std::string& question, std::string& answer);
  processes::ChildEnd end();  // also kills the program's remaining processes
  [[noreturn]] void fail_ended();
  [[noreturn]] void fail(const std::string& kind, const std::string& message);

  std::vector<std::string> program_;
  std::map<std::string, std::string> environment_;
  PersistentLimits limits_;
  int64_t num_starts_ = 0;
  int64_t cell_ = 0;  // number of the last question; every question has another number
  std::optional<Running> running_;
};

}  // namespace convoy::sweep
