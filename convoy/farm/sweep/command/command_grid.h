// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy sweep run`, and the cells that they describe: one run of a command for each
// value of each name, and each seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

struct CommandFlags {
  std::string name = "run";
  config::NameList grid;
  config::NameList zip;
  std::string cells;
  config::NameList space;
  int64_t samples = 0;
  std::string sampling = "sobol";
  int64_t sample_seed = 0;
  config::NameList env;
  config::NameList result;
  std::string best = "min";
  int64_t prune = 0;
  bool persistent = false;
  bool redo = false;
  int64_t max_gpus = -1;
  int64_t workers_per_device = 1;
  int64_t num_seeds = 1;
  std::vector<int64_t> seeds;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name, "name of the sweep, with which its tables begin");
    visit("grid", grid,
          "NAME=A,B,C: values of {NAME}; commas within brackets, braces and quotes are part of a "
          "value; "
          "may be given more than once");
    visit("zip", zip,
          "NAME=A,B,C: all names with --zip take their first values together, then their second "
          "ones, and so on");
    visit("cells", cells,
          "CSV file: a choice of values in each row, names in the first; a column `seed` is the "
          "seed");
    visit("space", space,
          "NAME=LOW..HIGH, with `,log` or `,int` behind, or NAME=A,B,C: values of {NAME} are "
          "sampled from it; needs --samples");
    visit("samples", samples, "points of the --space; more of them keep the first ones")
        .at_least(0);
    visit("sampling", sampling, "sobol covers the space evenly, random does not")
        .one_of({"sobol", "random"});
    visit("sample_seed", sample_seed, "of the samples").at_least(0);
    visit("env", env, "NAME=VALUE for the command; may be given more than once");
    visit("result", result,
          "name of the number in the last line of stdout with a JSON object that has it, `a.b` "
          "within another; may be given more than once, the first is the value; none = the seconds "
          "it took");
    visit("best", best, "the best cell, named at the end, has the least or the greatest value")
        .one_of({"min", "max"});
    visit("prune", prune,
          "a program that prints JSON lines with `step` and the first --result ends at this step "
          "when it is worse than the median of the cells that came there before; 0 = never")
        .at_least(0);
    visit("persistent", persistent,
          "start the command once; it reads a JSON line of names and values for each cell and "
          "answers with one");
    visit("redo", redo,
          "compute finished cells again: all of them, or those of the NAME=A,B that follow, as in "
          "`--redo lr=0.1 seed=0,1`; results are kept until the new ones are there");
    visit("max_gpus", max_gpus,
          "GPUs that workers share, one for each in CUDA_VISIBLE_DEVICES; -1 = all, 0 = none")
        .at_least(-1);
    visit("workers_per_device", workers_per_device, "workers on each GPU").at_least(1);
    visit("num_seeds", num_seeds, "values 0 to N - 1 of {seed}").at_least(1);
    visit("seeds", seeds, "values of {seed}, in place of --num-seeds");
  }
};

// Throws ConfigError for a name given twice, a value given twice (1 and 1.0 are equal), a
// placeholder without a name, and a missing command.
SweepPlan plan_command(const CommandFlags& flags, const std::vector<std::string>& command);

// Returns a test for cells. `choices` are texts "NAME=A,B"; a cell passes if it has one of the
// listed values of each name. Without choices every cell passes. Throws ConfigError for a name or a
// value that is in neither the grid nor the seeds.
std::function<bool(const Cell&)> chosen_cells(const CommandFlags& flags,
                                              const std::vector<std::string>& choices);

// Throws ConfigError if a cell's program certainly cannot be started.
void check_programs(const CommandFlags& flags, const std::vector<std::string>& command);

}  // namespace convoy::sweep
