// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep run`, and the cells they stand for: one run of a command for each value of each name, and
// each seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/config/field.h"
#include "convoy/sweep/runner/planned_cell.h"

namespace convoy::sweep {

struct CommandFlags {
  std::string name = "run";
  config::NameList grid;
  config::NameList env;
  std::string result;
  int64_t num_seeds = 1;
  std::vector<int64_t> seeds;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name, "run: name of the sweep");
    visit("grid", grid, "run: NAME=A,B,C: values of {NAME}; may be given more than once");
    visit("env", env, "run: NAME=VALUE for the command; may be given more than once");
    visit("result", result,
          "run: name of the number in the last line of stdout that is a JSON object with it; empty "
          "= the seconds it took");
    visit("num_seeds", num_seeds, "run: values 0 to N - 1 of {seed}").at_least(1);
    visit("seeds", seeds, "run: values of {seed}, in place of --num-seeds");
  }
};

// Throws ConfigError: a name given twice, a placeholder without a name, no command.
SweepPlan plan_command(const CommandFlags& flags, const std::vector<std::string>& command);

}  // namespace convoy::sweep
