// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/command/command_workload.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/launch/signals.h"
#include "convoy/sweep/command/program_run.h"
#include "convoy/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

struct CellCommand {
  std::vector<std::string> program;
  std::map<std::string, std::string> environment;
  std::string key;
};

CellCommand command_of(const Cell& cell) {
  try {
    const auto object = nlohmann::json::parse(cell.parameters);
    std::vector<std::string> names = {"seed"}, values = {std::to_string(cell.seed)};
    for (const auto& [name, value] : object.at("values").items()) {
      names.push_back(name);
      values.push_back(value.get<std::string>());
    }
    CellCommand command;
    for (const auto& word : object.at("command"))
      command.program.push_back(fill_placeholders(word.get<std::string>(), names, values));
    for (const auto& [name, value] : object.at("environment").items())
      command.environment[name] = fill_placeholders(value.get<std::string>(), names, values);
    object.at("result").get_to(command.key);
    return command;
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("wanted the parameters of a command, found `{}`: {}",
                                  cell.parameters.substr(0, 80), error.what()));
  }
}

[[noreturn]] void fail(const std::string& kind, const std::string& message, const ProgramEnd& end) {
  jobs::Failure failure;
  failure.kind = kind;
  failure.message = message;
  failure.exit_code = end.signal == 0 && !end.timed_out ? end.exit_code : -1;
  failure.signal = end.signal;
  failure.stderr_tail = end.errors_tail;
  throw TaskFailure(std::move(failure));
}

// Python's json module writes NaN and Infinity, which are no JSON.
std::string with_nulls(std::string line) {
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at))
      line.replace(at, word.size(), "null");
  return line;
}

// NaN where the program says so.
double value_of(const std::string& key, const ProgramEnd& end) {
  size_t stop = end.output.size();
  while (stop > 0) {
    const size_t before = end.output.rfind('\n', stop - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const auto line =
        nlohmann::json::parse(with_nulls(end.output.substr(begin, stop - begin)), nullptr, false);
    if (line.is_object() && line.contains(key)) {
      const auto& value = line[key];
      if (value.is_null()) return std::nan("");
      if (value.is_number()) return value.get<double>();
      fail("output", fmt::format("`{}` is no number: {}", key, value.dump().substr(0, 80)), end);
    }
    stop = before == std::string::npos ? 0 : before;
  }
  fail("output", fmt::format("no line of stdout is a JSON object with `{}`", key), end);
}

}  // namespace

std::string fill_placeholders(const std::string& text, const std::vector<std::string>& names,
                              const std::vector<std::string>& values) {
  std::string filled;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool doubled = at + 1 < text.size() && text[at + 1] == letter;
    if ((letter != '{' && letter != '}') || doubled) {
      filled += letter;
      if (letter == '{' || letter == '}') ++at;
      continue;
    }
    const size_t end = letter == '{' ? text.find('}', at) : std::string::npos;
    const std::string name = end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw ConfigError(fmt::format("`{}`: `{}` is no name of the grid", text, name),
                        {.hint = "names come from --grid name=a,b,c; write {{ and }} for braces"});
    filled += values[static_cast<size_t>(found - names.begin())];
    at = end;
  }
  return filled;
}

std::unique_ptr<GuessExperiment> CommandWorkload::guesses(const Cell&) const {
  throw ConfigError("a command has no guesses");
}

std::vector<DescentOutcome> CommandWorkload::descend(const std::vector<Cell>& cells) const {
  std::vector<DescentOutcome> outcomes;
  for (const Cell& cell : cells) {
    const CellCommand command = command_of(cell);
    const ProgramEnd end = run_program(command.program, command.environment, timeout_seconds_);
    if (end.timed_out)
      fail("timeout", fmt::format("the program ran longer than {} s", timeout_seconds_), end);
    if (end.signal != 0)
      fail("crash", fmt::format("the program was ended by {}", launch::signal_name(end.signal)),
           end);
    if (end.exit_code != 0)
      fail("exit", fmt::format("the program ended with {}", end.exit_code), end);
    DescentOutcome outcome;
    outcome.loss = command.key.empty() ? end.seconds : value_of(command.key, end);
    outcomes.push_back(outcome);
  }
  return outcomes;
}

Theory CommandWorkload::theory(const Cell&) const { return {}; }

}  // namespace convoy::sweep
