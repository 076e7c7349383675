// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/command_workload.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/median_step.h"
#include "convoy/farm/sweep/command/program_answer.h"
#include "convoy/farm/sweep/command/program_run.h"
#include "convoy/farm/sweep/command/result_lines.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/results/grid_text.h"
#include "convoy/farm/sweep/runner/task_failure.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {

struct CellCommand {
  std::vector<std::string> program;
  std::map<std::string, std::string> environment;
  std::vector<std::string> keys;  // empty = the result is the program's time in seconds
  std::optional<PruneRule> prune;
  nlohmann::json question;  // the values by name, with the seed
  bool persistent = false;
};

namespace {

// Texts that are numbers are written as JSON numbers, as programs expect.
nlohmann::json question_of(const Cell& cell) {
  nlohmann::json question = nlohmann::json::object();
  for (const auto& [name, value] : axes_of(cell)) question[name] = value;
  question["seed"] = cell.seed;
  return question;
}

std::vector<std::string> keys_of(const nlohmann::json& result) {
  if (result.is_array()) return result.get<std::vector<std::string>>();
  const auto key = result.get<std::string>();
  return key.empty() ? std::vector<std::string>() : std::vector<std::string>{key};
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
    command.keys = keys_of(object.at("result"));
    if (object.contains("prune"))
      command.prune = PruneRule{.step = object["prune"].get<int64_t>(),
                                .greatest_is_best = object.value("best", "min") == "max"};
    return command;
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("wanted the parameters of a command, found `{}`: {}",
                                  cell.parameters.str().substr(0, 80), error.what()),
                      {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
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

// A value that is not a finite number fails the cell, in the first result and in every other.
void take_results(const std::vector<std::string>& keys,
                  const std::function<double(const std::string& key)>& value_of_key,
                  CellOutcome& outcome) {
  for (const std::string& key : keys) {
    const double value = value_of_key(key);
    if (&key == &keys.front()) {
      outcome.value = value;
      continue;
    }
    if (!std::isfinite(value)) {
      jobs::Failure failure;
      failure.kind = "non_finite";
      failure.message = fmt::format("`{}` is not a finite number", key);
      throw TaskFailure(std::move(failure));
    }
    outcome.more.push_back(value);
  }
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

CellOutcome CommandWorkload::run_once(const CellCommand& command) const {
  CellOutcome outcome;
  // Recorded before the program starts: an edit of its files after that belongs to another program.
  outcome.program = record_.of(command.program);
  std::optional<MedianStep> median;
  if (command.prune) median.emplace(*command.prune, command.keys.front(), others_);
  ResultLines lines(command.keys);
  const ProgramEnd end = run_program(command.program, command.environment, timeout_seconds_,
                                     [&](const OutputLine& line) {
                                       lines.take(line);
                                       return !median || median->wants(line);
                                     });
  if (median) outcome.at_step = median->value();
  if (end.unwanted) {
    outcome.pruned = median->pruned();
    return outcome;
  }
  if (end.timed_out)
    fail("timeout", fmt::format("the program ran longer than {} s", timeout_seconds_), end);
  if (end.signal != 0)
    fail("crash", fmt::format("the program was ended by {}", processes::signal_name(end.signal)),
         end);
  if (end.exit_code != 0)
    fail("exit", fmt::format("the program ended with {}", end.exit_code), end);
  if (command.keys.empty()) outcome.value = end.seconds;
  try {
    take_results(
        command.keys, [&](const std::string& key) { return lines.value(key); }, outcome);
  } catch (const TaskFailure& failed) {
    jobs::Failure failure = failed.failure();
    failure.exit_code = end.exit_code;
    failure.stderr_tail = end.errors_tail;
    // The program ended well, so another run would print the same.
    throw TaskFailure(std::move(failure), TryAgain::No);
  }
  return outcome;
}

std::vector<std::string> program_of(const Cell& cell) { return command_of(cell).program; }

std::string command_line_of(const Cell& cell) {
  std::string text;
  const CellCommand command = command_of(cell);
  for (const auto& [name, value] : command.environment)
    if (!name.starts_with("CONVOY_SWEEP_"))
      text += fmt::format("{}={} ", name, shell_text({value}));
  return text + shell_text(command.program);
}

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

std::vector<CellOutcome> CommandWorkload::compute(const std::vector<Cell>& cells) const {
  std::vector<CellOutcome> outcomes;
  for (const Cell& cell : cells) {
    const CellCommand command = command_of(cell);
    if (command.persistent) {
      outcomes.push_back(ask(command));
      continue;
    }
    outcomes.push_back(run_once(command));
  }
  return outcomes;
}

CellOutcome CommandWorkload::ask(const CellCommand& command) const {
  if (!program_ || !program_->is(command.program, command.environment))
    program_ = std::make_unique<PersistentProgram>(command.program, command.environment,
                                                   PersistentLimits::of_timeout(timeout_seconds_));
  const int64_t num_starts = program_->num_starts();
  std::string record = record_.of(command.program);
  CellOutcome outcome;
  const nlohmann::json answer = program_->ask(command.question);
  take_results(
      command.keys, [&](const std::string& key) { return value_in(answer, key); }, outcome);
  if (program_->num_starts() != num_starts) program_record_ = std::move(record);
  outcome.program = program_record_;
  return outcome;
}

std::vector<std::string> CommandWorkload::metrics(const Cell& cell) const {
  const auto object = nlohmann::json::parse(cell.parameters.str(), nullptr, false);
  // The cells of a function have no such keys.
  if (!object.is_object() || !object.contains("result") || !object.contains("command"))
    return Workload::metrics(cell);
  const std::vector<std::string> keys = keys_of(object["result"]);
  return keys.empty() ? std::vector<std::string>{"seconds"} : keys;
}

}  // namespace convoy::sweep
