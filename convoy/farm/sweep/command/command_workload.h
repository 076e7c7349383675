// SPDX-License-Identifier: Apache-2.0
//
// Workload `run`: a cell is one run of a user's program; its value is a number that the program
// prints.
//
// Parameters of a cell: {"command": [..], "environment": {..}, "result": KEY, "values": {NAME:
// VALUE, ..}}. "result" may also be a list of keys. Every "{name}" and "{seed}" in the command and
// the environment is replaced by the value of that name; "{{" and "}}" are braces. The last line of
// stdout with KEY holds the result (result_lines.h). With an empty KEY the value is the seconds
// that the program took. The program's environment has CONVOY_SWEEP_SEED and
// CONVOY_SWEEP_PARAMETERS (a JSON object of the values and the seed).
//
// If "prune" is STEP, the program is killed at that step of its progress when the first result is
// worse than the median of the other cells (median_step.h).
//
// If "persistent" is true, one program runs for many cells (PersistentProgram). It reads the JSON
// object of the values and the seed as one line per cell, and its answer holds KEY, or {"error":
// TEXT}.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/sweep/command/persistent_program.h"
#include "convoy/farm/sweep/command/program_record.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

struct CellCommand;

class CommandWorkload : public Workload {
 public:
  // Ends programs that run longer than this for one cell, with all processes that they started; 0 =
  // no limit.
  explicit CommandWorkload(double timeout_seconds = 0) : timeout_seconds_(timeout_seconds) {}

  std::string name() const override { return "run"; }
  std::string version() const override { return "1"; }
  std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const override;  // throws ConfigError
  // Throws TaskFailure of kind "exit", "crash", "timeout", "output" or "start".
  std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const override;
  std::vector<std::string> metrics(const Cell& cell) const override;
  void compare_with(std::function<std::vector<double>()> others) override {
    others_ = std::move(others);
  }

 private:
  CellOutcome ask(const CellCommand& command) const;
  CellOutcome run_once(const CellCommand& command) const;

  double timeout_seconds_;
  std::function<std::vector<double>()> others_;  // set by compare_with()
  mutable ProgramRecord record_;
  // The program of the last cell with a persistent program.
  mutable std::unique_ptr<PersistentProgram> program_;
  mutable std::string program_record_;  // record of the program's files at its start
};

// The command of a cell with its placeholders replaced.
std::vector<std::string> program_of(const Cell& cell);
// The same command as a line for a shell, after the variables that --env set.
std::string command_line_of(const Cell& cell);

// `text` with its placeholders replaced. Throws ConfigError on an unknown name.
std::string fill_placeholders(const std::string& text, const std::vector<std::string>& names,
                              const std::vector<std::string>& values);

}  // namespace convoy::sweep
