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
  bool persistent = false;
  int64_t max_gpus = -1;
  int64_t workers_per_device = 1;
  int64_t num_seeds = 1;
  std::vector<int64_t> seeds;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name, "run: name of the sweep");
    visit("grid", grid, "run: NAME=A,B,C: values of {NAME}; may be given more than once");
    visit("env", env, "run: NAME=VALUE for the command; may be given more than once");
    visit("result", result,
          "run: name of the number in the last line of stdout that is a JSON object with it, `a.b` "
          "within another; empty = the seconds it took");
    visit("persistent", persistent,
          "run: the command stays, reads a JSON line of names and values for each cell and answers "
          "with one");
    visit("max_gpus", max_gpus,
          "run: GPUs that workers share; each sees one as CUDA_VISIBLE_DEVICES; -1 = all, 0 = none")
        .at_least(-1);
    visit("workers_per_device", workers_per_device, "run: workers on each GPU").at_least(1);
    visit("num_seeds", num_seeds, "run: values 0 to N - 1 of {seed}").at_least(1);
    visit("seeds", seeds, "run: values of {seed}, in place of --num-seeds");
  }
};

// Throws ConfigError: a name given twice, a placeholder without a name, no command.
SweepPlan plan_command(const CommandFlags& flags, const std::vector<std::string>& command);

}  // namespace convoy::sweep
