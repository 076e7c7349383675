// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/cell_outcome.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/base/usable_cpus.h"

namespace convoy::sweep {
namespace {

jobs::Result not_finite(const std::string& what, const Effort& effort) {
  jobs::Result result;
  result.kind = jobs::ResultKind::Failed;
  result.failure.kind = "non_finite";
  result.failure.message = what;
  result.failure.attempt = static_cast<int>(effort.attempts);
  return result;
}

void put(nlohmann::ordered_json& object, const Effort& effort) {
  object["microseconds"] = effort.microseconds;
  object["attempts"] = effort.attempts;
  object["device"] = effort.device;
}

double number_or_nan(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

}  // namespace

jobs::Result guess_result(const Tally& tally, const Effort& effort) {
  if (tally.accepted > 0 && tally.accepted == tally.non_finite)
    return not_finite(
        fmt::format("the losses of all {} accepted guesses are no finite numbers", tally.accepted),
        effort);
  nlohmann::ordered_json object;
  object["tally"] = nlohmann::ordered_json::parse(tally.json());
  put(object, effort);
  return {.kind = tally.accepted > 0 ? jobs::ResultKind::Value : jobs::ResultKind::Censored,
          .payload = object.dump(),
          .failure = {}};
}

jobs::Result descent_result(const DescentOutcome& outcome, const Effort& effort) {
  if (!std::isfinite(outcome.loss))
    return not_finite(outcome.steps > 0 ? fmt::format("the loss after {} steps is no finite number",
                                                      outcome.steps)
                                        : "the value is no finite number",
                      effort);
  nlohmann::ordered_json object;
  object["loss"] = outcome.loss;
  object["train_loss"] = outcome.train_loss;  // NaN is written as null
  object["steps"] = outcome.steps;
  put(object, effort);
  return {.kind = jobs::ResultKind::Value, .payload = object.dump(), .failure = {}};
}

CellResult cell_result(const PlannedCell& planned, const jobs::TaskRecord& record) {
  CellResult cell;
  cell.cell = planned.cell;
  cell.planned_guesses = planned.guesses;
  if (!record.result) return cell;
  if (record.result->kind == jobs::ResultKind::Failed) {
    cell.state = CellState::Failed;
    cell.failure = record.result->failure;
    cell.attempts = cell.failure.attempt;
    return cell;
  }
  try {
    const auto object = nlohmann::json::parse(record.result->payload);
    cell.attempts = object.at("attempts").get<int64_t>();
    cell.seconds = static_cast<double>(object.at("microseconds").get<int64_t>()) * 1e-6;
    cell.device = object.at("device").get<std::string>();
    cell.state = CellState::Value;
    if (planned.guesses > 0) {
      cell.tally = Tally::parse(object.at("tally").dump());
      if (record.result->kind == jobs::ResultKind::Censored)
        cell.state = CellState::Censored;
      else
        cell.value = cell.tally.mean();
    } else {
      cell.descent = {.loss = object.at("loss").get<double>(),
                      .train_loss = number_or_nan(object.at("train_loss")),
                      .steps = object.at("steps").get<int64_t>()};
      cell.value = cell.descent.loss;
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("the result of task {} is damaged: {}", record.id, error.what()));
  }
  return cell;
}

std::string device_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "CPU";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) model = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} of {} cores", model, usable_cpus(),
                     std::thread::hardware_concurrency());
}

}  // namespace convoy::sweep
