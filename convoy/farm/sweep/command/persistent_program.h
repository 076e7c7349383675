// SPDX-License-Identifier: Apache-2.0
//
// A program that stays: it reads one line of JSON per cell on its stdin, with a number `cell` in
// it, and answers each with one line of JSON on its stdout that repeats this number, as `cell` or
// within the line as `request`. So a surplus or late answer can never be taken for another cell's.
// Started at the first cell, and again after it crashed, hung or answered with anything else. One
// thread; SIGPIPE must be ignored.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/processes/child_process.h"

namespace convoy::sweep {

// Seconds; 0 = any. The time of a cell begins when the program takes it: the first one after a
// start is taken when the program begins to read, which may be after many imports.
struct PersistentLimits {
  double cell_seconds = 0;
  double start_seconds = 0;

  // Time limit of a start for a given limit per cell: 10 minutes, or as long as the cell.
  static PersistentLimits of_timeout(double cell_seconds);
};

class PersistentProgram {
 public:
  PersistentProgram(std::vector<std::string> program,
                    std::map<std::string, std::string> environment, PersistentLimits limits);
  ~PersistentProgram();  // ends it, and what it started
  PersistentProgram(const PersistentProgram&) = delete;
  PersistentProgram& operator=(const PersistentProgram&) = delete;

  bool is(const std::vector<std::string>& program,
          const std::map<std::string, std::string>& environment) const {
    return program == program_ && environment == environment_;
  }

  int64_t num_starts() const { return num_starts_; }

  // The answer to `question`, an object without `cell`. Blocks. Throws TaskFailure: "exit",
  // "crash", "timeout", "output"; and what start_child throws.
  nlohmann::json ask(const nlohmann::json& question);

 private:
  struct Running {
    processes::ChildProcess process;
    Descriptor input;
    std::string output;  // after the last line
    std::string errors_tail;
    bool answered = false;                   // at least once
    std::optional<processes::ChildEnd> end;  // once it was reaped
  };
  enum class Turn { Answer, Ended, TimedOut, NeverRead };

  void start();
  bool said_something_unasked();
  void check_cell(const nlohmann::json& answer);
  Turn exchange_lines(const std::string& question, std::string& answer);
  processes::ChildEnd end();  // kills what is left of it
  [[noreturn]] void fail_ended();
  [[noreturn]] void fail(const std::string& kind, const std::string& message);

  std::vector<std::string> program_;
  std::map<std::string, std::string> environment_;
  PersistentLimits limits_;
  int64_t num_starts_ = 0;
  int64_t cell_ = 0;  // number of the last question; no two have the same
  std::optional<Running> running_;
};

}  // namespace convoy::sweep
