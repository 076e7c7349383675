// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/command_grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/farm/sweep/command/command_workload.h"
#include "convoy/farm/sweep/command/grid_blocks.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::sweep {
namespace {

// The value in the grid's spelling: 1.0 finds the grid's 1.
std::string value_of_grid(const NamedValues& grid, const std::string& value) {
  const std::optional<double> number = number_in(value);
  for (const std::string& one : grid.values)
    if (one == value || (number && number_in(one) == number)) return one;
  throw ConfigError(fmt::format("--redo: no cell has {}={}", grid.name, value),
                    {.hint = fmt::format("its values are {}", fmt::join(grid.values, ", "))});
}

std::vector<std::string> names_of(const std::vector<GridBlock>& blocks) {
  std::vector<std::string> names;
  for (const GridBlock& block : blocks)
    names.insert(names.end(), block.names.begin(), block.names.end());
  return names;
}

bool has_seeds(const std::vector<GridBlock>& blocks) {
  const std::vector<std::string> names = names_of(blocks);
  return std::find(names.begin(), names.end(), "seed") != names.end();
}

GridBlock seed_block(const CommandFlags& flags) {
  GridBlock block{.names = {"seed"}, .rows = {}};
  for (const int64_t seed : chosen_seeds(flags.seeds, flags.num_seeds))
    block.rows.push_back({std::to_string(seed)});
  return block;
}

nlohmann::json environment_of(const CommandFlags& flags) {
  nlohmann::json environment = nlohmann::json::object();
  for (const std::string& text : flags.env.names) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError(fmt::format("--env needs NAME=VALUE, found `{}`", text),
                        {.hint = "such as --env OMP_NUM_THREADS=1"});
    environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

void check_placeholders(const std::vector<std::string>& command, const nlohmann::json& environment,
                        std::vector<std::string> names) {
  for (const std::string& word : command) fill_placeholders(word, names, names);
  for (const auto& [name, value] : environment.items())
    fill_placeholders(value.get<std::string>(), names, names);
}

SharedText text_of(const nlohmann::json& parameters) {
  try {
    return parameters.dump();
  } catch (const nlohmann::json::type_error&) {
    throw ConfigError(
        "a sweep stores its cells as UTF-8 text, but a word of the command, a value or a variable "
        "is not UTF-8",
        {.hint = "pass such bytes in a file"});
  }
}

// The distinct values of the first word of the command. Only the names that this word contains are
// varied, because the whole grid may be large.
std::set<std::string> programs_of(const CommandFlags& flags, const std::string& word) {
  std::vector<GridBlock> blocks = blocks_of(flags);
  if (!has_seeds(blocks)) blocks.push_back(seed_block(flags));
  std::vector<std::string> mentioned;
  for (const std::string& name : names_of(blocks))
    if (word.find("{" + name + "}") != std::string::npos) mentioned.push_back(name);
  std::set<std::string> programs;
  for (const Choice& chosen : choices(only_names(blocks, mentioned))) {
    std::vector<std::string> names, values;
    for (const auto& [name, value] : chosen) {
      names.push_back(name);
      values.push_back(value);
    }
    programs.insert(fill_placeholders(word, names, values));
  }
  return programs;
}

// Parameters that all cells share; with the values they decide a cell's numbers. A cell's identity
// is the hash of these parameters, so a single result is still stored as a word and not as a list.
nlohmann::json shared_parameters(const CommandFlags& flags, const std::vector<std::string>& command,
                                 const nlohmann::json& environment) {
  nlohmann::json parameters;
  parameters["command"] = command;
  parameters["environment"] = environment;
  const std::vector<std::string>& results = flags.result.names;
  parameters["result"] = results.empty()       ? nlohmann::json("")
                         : results.size() == 1 ? nlohmann::json(results.front())
                                               : nlohmann::json(results);
  if (flags.persistent) parameters["persistent"] = true;
  if (flags.prune > 0) {
    parameters["prune"] = flags.prune;
    parameters["best"] = flags.best;
  }
  return parameters;
}

void check_flags(const CommandFlags& flags) {
  check_sweep_name(flags.name);
  const std::vector<std::string>& results = flags.result.names;
  const std::set<std::string> distinct(results.begin(), results.end());
  if (distinct.size() != results.size() || distinct.contains(""))
    throw ConfigError(
        fmt::format("--result: wanted names, none twice, found {}", fmt::join(results, ", ")),
        {.hint = "such as --result loss,accuracy"});
  if (flags.persistent && results.empty())
    throw ConfigError("--persistent needs --result NAME, a name in each answer",
                      {.hint = "such as --result loss"});
  if (flags.prune != 0 && results.empty())
    throw ConfigError("--prune needs --result NAME, a name in each line of progress",
                      {.hint = "such as --result loss"});
  if (flags.prune != 0 && flags.persistent)
    throw ConfigError("--prune ends programs, and a --persistent one stays",
                      {.hint = "leave one of them out"});
}

int64_t seed_in(const std::string& text) {
  const auto seed = text_as<int64_t>(text);
  if (!seed.has_value())
    throw ConfigError(fmt::format("--cells: wanted a whole number as seed, found `{}`", text),
                      {.hint = "write whole numbers into the column `seed`"});
  return *seed;
}

}  // namespace

SweepPlan plan_command(const CommandFlags& flags, const std::vector<std::string>& command) {
  if (command.empty())
    throw ConfigError("sweep run needs a command",
                      {.hint = "convoy sweep run --grid lr=0.1,0.01 -- ./train --lr {lr}"});
  check_flags(flags);
  const std::vector<GridBlock> blocks = blocks_of(flags);
  const bool seeds_in_rows = has_seeds(blocks);
  const nlohmann::json environment = environment_of(flags);
  std::vector<std::string> names;
  if (!flags.persistent) {
    names = names_of(blocks);
    if (!seeds_in_rows) names.emplace_back("seed");
  }
  check_placeholders(command, environment, names);
  const double num_cells =
      num_choices(blocks) * static_cast<double>(num_chosen_seeds(flags.seeds, flags.num_seeds));
  check_cell_count(num_cells);
  const std::vector<int64_t> seeds = chosen_seeds(flags.seeds, flags.num_seeds);
  SweepPlan plan{.label = flags.name,
                 .workload = "run",
                 .mode = "",
                 .version = CommandWorkload().version(),
                 .cells = {}};
  plan.cells.reserve(static_cast<size_t>(num_cells));
  nlohmann::json parameters = shared_parameters(flags, command, environment);
  for (Choice& values : choices(blocks)) {
    std::vector<int64_t> own_seed;
    if (const auto seed = values.find("seed"); seed != values.end()) {
      own_seed.push_back(seed_in(seed->second));
      values.erase(seed);
    }
    parameters["values"] = values.empty() ? nlohmann::json::object() : nlohmann::json(values);
    const SharedText text = text_of(parameters);
    for (const int64_t seed : seeds_in_rows ? own_seed : seeds) {
      PlannedCell planned;
      planned.cell = {.method = "run", .seed = seed, .parameters = text};
      plan.cells.push_back(std::move(planned));
    }
  }
  return plan;
}

std::function<bool(const Cell&)> chosen_cells(const CommandFlags& flags,
                                              const std::vector<std::string>& choices_of_user) {
  std::vector<GridBlock> blocks = blocks_of(flags);
  if (!has_seeds(blocks)) blocks.push_back(seed_block(flags));
  std::map<std::string, std::set<std::string>> wanted;
  for (const std::string& text : choices_of_user) {
    const NamedValues choice = named_values("--redo", text);
    NamedValues grid{.name = choice.name, .values = {}};
    for (const GridBlock& block : only_names(blocks, {choice.name}))
      for (const auto& row : block.rows) grid.values.push_back(row.front());
    if (grid.values.empty()) {
      std::vector<std::string> names;
      for (const GridBlock& block : blocks)
        names.insert(names.end(), block.names.begin(), block.names.end());
      throw ConfigError(
          fmt::format("--redo: `{}` is not a name of the grid", choice.name),
          {.key = "--redo", .hint = fmt::format("the grid has {}", fmt::join(names, ", "))});
    }
    for (const std::string& value : choice.values)
      wanted[choice.name].insert(value_of_grid(grid, value));
  }
  return [wanted](const Cell& cell) {
    const auto values = nlohmann::json::parse(cell.parameters.str()).at("values");
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& choice) {
      const auto& [name, texts] = choice;
      return texts.contains(name == "seed" ? std::to_string(cell.seed)
                                           : values.at(name).template get<std::string>());
    });
  };
}

void check_programs(const CommandFlags& flags, const std::vector<std::string>& command) {
  for (const std::string& program : programs_of(flags, command.front())) {
    if (const processes::ProgramProblem problem = processes::program_problem(program);
        problem.any())
      throw ConfigError(problem.found, {.hint = problem.to_do});
  }
}

}  // namespace convoy::sweep
