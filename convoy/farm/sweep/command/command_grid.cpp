// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/command_grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/command_workload.h"
#include "convoy/farm/sweep/command/grid_values.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::sweep {
namespace {

struct Axis {
  std::string name;
  std::vector<std::string> values;
};

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Axis choice_of(const std::string& flag, const std::string& text) {
  const size_t equals = text.find('=');
  CONVOY_CHECK(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), ConfigError,
               "{} needs NAME=A,B,C, found `{}`", flag, text);
  return {.name = text.substr(0, equals), .values = comma_separated(text.substr(equals + 1))};
}

// As the axis has it: 1.0 is its 1.
std::string value_of_axis(const Axis& axis, const std::string& value) {
  const std::optional<double> number = number_in(value);
  for (const std::string& one : axis.values)
    if (one == value || (number && number_in(one) == number)) return one;
  throw ConfigError(fmt::format("--redo: no cell has {}={}", axis.name, value),
                    {.hint = fmt::format("its values are {}", fmt::join(axis.values, ", "))});
}

std::vector<Axis> axes_of_flags(const CommandFlags& flags) {
  std::vector<Axis> axes;
  for (const std::string& text : flags.grid.names) {
    Axis axis = choice_of("--grid", text);
    const bool known = std::any_of(axes.begin(), axes.end(),
                                   [&](const Axis& one) { return one.name == axis.name; });
    CONVOY_CHECK(!known && axis.name != "seed", ConfigError,
                 "--grid: `{}` is given already; seeds are --num-seeds or --seeds", axis.name);
    CONVOY_CHECK(axis.name != "cell", ConfigError,
                 "--grid: `cell` is the name of a cell's number; choose another");
    check_grid_values(axis.name,
                      std::vector<nlohmann::json>(axis.values.begin(), axis.values.end()));
    axes.push_back(std::move(axis));
  }
  return axes;
}

nlohmann::json environment_of(const CommandFlags& flags) {
  nlohmann::json environment = nlohmann::json::object();
  for (const std::string& text : flags.env.names) {
    const size_t equals = text.find('=');
    CONVOY_CHECK(equals != std::string::npos && equals > 0, ConfigError,
                 "--env needs NAME=VALUE, found `{}`", text);
    environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

void check_placeholders(const std::vector<std::string>& command, const nlohmann::json& environment,
                        const std::vector<Axis>& axes, bool seed) {
  std::vector<std::string> names;
  if (seed) names.emplace_back("seed");
  for (const Axis& axis : axes) names.push_back(axis.name);
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

// Every choice of one value per axis; the last axis turns fastest.
std::vector<std::map<std::string, std::string>> choices(const std::vector<Axis>& axes) {
  std::vector<std::map<std::string, std::string>> all = {{}};
  for (const Axis& axis : axes) {
    std::vector<std::map<std::string, std::string>> longer;
    for (const auto& chosen : all)
      for (const std::string& value : axis.values) {
        longer.push_back(chosen);
        longer.back()[axis.name] = value;
      }
    all = std::move(longer);
  }
  return all;
}

// The values that the first word of the command takes, each once. Only names that it mentions are
// varied: the whole grid may be large.
std::set<std::string> programs_of(const CommandFlags& flags, const std::string& word) {
  const auto mentions = [&](const std::string& name) {
    return word.find("{" + name + "}") != std::string::npos;
  };
  std::vector<Axis> axes = axes_of_flags(flags);
  std::erase_if(axes, [&](const Axis& axis) { return !mentions(axis.name); });
  if (mentions("seed")) {
    Axis seeds{.name = "seed", .values = {}};
    for (const int64_t seed : chosen_seeds(flags.seeds, flags.num_seeds))
      seeds.values.push_back(std::to_string(seed));
    axes.push_back(std::move(seeds));
  }
  std::set<std::string> programs;
  for (const auto& chosen : choices(axes)) {
    std::vector<std::string> names, values;
    for (const auto& [name, value] : chosen) {
      names.push_back(name);
      values.push_back(value);
    }
    programs.insert(fill_placeholders(word, names, values));
  }
  return programs;
}

}  // namespace

SweepPlan plan_command(const CommandFlags& flags, const std::vector<std::string>& command) {
  if (command.empty())
    throw ConfigError("sweep run needs a command",
                      {.hint = "convoy sweep run --grid lr=0.1,0.01 -- ./train --lr {lr}"});
  CONVOY_CHECK(!flags.persistent || !flags.result.empty(), ConfigError,
               "--persistent needs --result NAME, a name in each answer");
  const std::vector<Axis> axes = axes_of_flags(flags);
  const nlohmann::json environment = environment_of(flags);
  check_placeholders(command, environment, flags.persistent ? std::vector<Axis>{} : axes,
                     !flags.persistent);
  auto num_cells = static_cast<double>(num_chosen_seeds(flags.seeds, flags.num_seeds));
  for (const Axis& axis : axes) num_cells *= static_cast<double>(axis.values.size());
  check_cell_count(num_cells);
  const std::vector<int64_t> seeds = chosen_seeds(flags.seeds, flags.num_seeds);
  SweepPlan plan{.label = flags.name,
                 .workload = "run",
                 .mode = "",
                 .version = CommandWorkload().version(),
                 .cells = {}};
  plan.cells.reserve(static_cast<size_t>(num_cells));
  for (const auto& values : choices(axes)) {
    nlohmann::json parameters;
    parameters["command"] = command;
    parameters["environment"] = environment;
    parameters["result"] = flags.result;
    if (flags.persistent) parameters["persistent"] = true;
    parameters["values"] = nlohmann::json(values);
    if (values.empty()) parameters["values"] = nlohmann::json::object();
    const SharedText text = text_of(parameters);
    for (const int64_t seed : seeds) {
      PlannedCell planned;
      planned.cell = {.method = "run", .seed = seed, .parameters = text};
      plan.cells.push_back(std::move(planned));
    }
  }
  return plan;
}

std::function<bool(const Cell&)> chosen_cells(const CommandFlags& flags,
                                              const std::vector<std::string>& choices) {
  std::vector<Axis> axes = axes_of_flags(flags);
  Axis seeds{.name = "seed", .values = {}};
  for (const int64_t seed : chosen_seeds(flags.seeds, flags.num_seeds))
    seeds.values.push_back(std::to_string(seed));
  axes.push_back(std::move(seeds));
  std::map<std::string, std::set<std::string>> wanted;
  for (const std::string& text : choices) {
    const Axis choice = choice_of("--redo", text);
    const auto axis = std::find_if(axes.begin(), axes.end(),
                                   [&](const Axis& one) { return one.name == choice.name; });
    CONVOY_CHECK(axis != axes.end(), ConfigError, "--redo: `{}` is not a name of the grid",
                 choice.name);
    for (const std::string& value : choice.values)
      wanted[choice.name].insert(value_of_axis(*axis, value));
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
