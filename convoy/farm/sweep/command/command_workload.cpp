// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/command_workload.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/json_answer.h"
#include "convoy/farm/sweep/command/program_run.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/task_failure.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {

struct CellCommand {
  std::vector<std::string> program;
  std::map<std::string, std::string> environment;
  std::string key;
  nlohmann::json question;  // the values by name, and the seed
  bool persistent = false;
};

namespace {

// Texts that are numbers become numbers, as programs expect.
nlohmann::json question_of(const Cell& cell) {
  nlohmann::json question = nlohmann::json::object();
  for (const auto& [name, value] : axes_of(cell)) question[name] = value;
  question["seed"] = cell.seed;
  return question;
}

CellCommand command_of(const Cell& cell) {
  try {
    const auto object = nlohmann::json::parse(cell.parameters.str());
    std::vector<std::string> names = {"seed"}, values = {std::to_string(cell.seed)};
    for (const auto& [name, value] : object.at("values").items()) {
      names.push_back(name);
      values.push_back(value.get<std::string>());
    }
    CellCommand command;
    command.question = question_of(cell);
    command.persistent = object.value("persistent", false);
    if (!command.persistent) {
      command.environment["CONVOY_SWEEP_SEED"] = std::to_string(cell.seed);
      command.environment["CONVOY_SWEEP_PARAMETERS"] = command.question.dump();
    }
    for (const auto& word : object.at("command"))
      command.program.push_back(fill_placeholders(word.get<std::string>(), names, values));
    for (const auto& [name, value] : object.at("environment").items())
      command.environment[name] = fill_placeholders(value.get<std::string>(), names, values);
    object.at("result").get_to(command.key);
    return command;
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("wanted the parameters of a command, found `{}`: {}",
                                  cell.parameters.str().substr(0, 80), error.what()));
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

// NaN when the program answers NaN.
double value_of(const std::string& key, const ProgramEnd& end) {
  size_t stop = end.object_lines.size();
  while (stop > 0) {
    const size_t before = end.object_lines.rfind('\n', stop - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const auto line = json_line(end.object_lines.substr(begin, stop - begin));
    if (const auto* const value = line ? find_key(*line, key) : nullptr)
      return number_of(*value, key);
    stop = before == std::string::npos ? 0 : before;
  }
  fail("output", fmt::format("no line of stdout is a JSON object with `{}`", key), end);
}

double run_once(const CellCommand& command, double timeout_seconds) {
  const ProgramEnd end = run_program(command.program, command.environment, timeout_seconds);
  if (end.timed_out)
    fail("timeout", fmt::format("the program ran longer than {} s", timeout_seconds), end);
  if (end.signal != 0)
    fail("crash", fmt::format("the program was ended by {}", processes::signal_name(end.signal)),
         end);
  if (end.exit_code != 0)
    fail("exit", fmt::format("the program ended with {}", end.exit_code), end);
  return command.key.empty() ? end.seconds : value_of(command.key, end);
}

double value_in(const nlohmann::json& answer, const std::string& key) {
  jobs::Failure failure;
  const auto* const error = find_key(answer, "error");
  if (error != nullptr && error->is_string() && !is_number_as_text(*error)) {
    failure.kind = "error";
    failure.message = error->get<std::string>();
    throw TaskFailure(std::move(failure));
  }
  if (const auto* const value = find_key(answer, key)) return number_of(*value, key);
  failure.kind = "output";
  failure.message = fmt::format("the answer has no `{}`", key);
  throw TaskFailure(std::move(failure));
}

}  // namespace

std::vector<std::string> program_of(const Cell& cell) { return command_of(cell).program; }

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
      throw ConfigError(fmt::format("`{}`: `{}` is not a name of the grid", text, name),
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
    if (command.persistent) {
      outcomes.push_back(ask(command));
      continue;
    }
    // Before it starts: an edit of its files from then on is one of another program.
    DescentOutcome outcome;
    outcome.program = record_.of(command.program);
    outcome.loss = run_once(command, timeout_seconds_);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

DescentOutcome CommandWorkload::ask(const CellCommand& command) const {
  if (!program_ || !program_->is(command.program, command.environment))
    program_ = std::make_unique<PersistentProgram>(command.program, command.environment,
                                                   PersistentLimits::of_timeout(timeout_seconds_));
  const int64_t num_starts = program_->num_starts();
  std::string record = record_.of(command.program);
  DescentOutcome outcome;
  outcome.loss = value_in(program_->ask(command.question), command.key);
  if (program_->num_starts() != num_starts) program_record_ = std::move(record);
  outcome.program = program_record_;
  return outcome;
}

Theory CommandWorkload::theory(const Cell&) const { return {}; }

}  // namespace convoy::sweep
