// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/cell_outcome.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "convoy/core/base/cpu_name.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_cpus.h"

namespace convoy::sweep {
namespace {

jobs::Result failed(const std::string& kind, const std::string& what, const Effort& effort) {
  jobs::Result result;
  result.kind = jobs::ResultKind::Failed;
  result.failure.kind = kind;
  result.failure.message = what;
  result.failure.attempt = static_cast<int>(effort.attempts);
  return result;
}

constexpr const char* kNotFinite = "non_finite";
constexpr const char* kLostGuesses = "lost_guesses";

std::string lost_guesses_text(const PlannedCell& planned, const Tally& tally) {
  return fmt::format("its result is of {} of {} guesses", tally.guesses, planned.guesses);
}

void put(nlohmann::ordered_json& object, const Effort& effort) {
  object["microseconds"] = effort.microseconds;
  object["attempts"] = effort.attempts;
  object["device"] = effort.device;
}

// Reads texts that this file wrote, in a twentieth of a JSON parser's time. Any other text is left
// to the parser.
class OwnText {
 public:
  explicit OwnText(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}
  OwnText& skip(std::string_view expected) {
    good_ = good_ && std::string_view(at_, end_).starts_with(expected);
    if (good_) at_ += expected.size();
    return *this;
  }
  template <class Number>
  OwnText& read(Number& number) {
    const auto [end, status] = std::from_chars(at_, end_, number);
    good_ = good_ && status == std::errc();
    at_ = end;
    return *this;
  }
  OwnText& read_or_null(double& number) {
    if (!std::string_view(at_, end_).starts_with("null")) return read(number);
    number = std::nan("");
    return skip("null");
  }
  OwnText& read_plain(std::string_view& text) {
    const char* const close = std::find(at_, end_, '"');
    text = {at_, close};
    good_ = good_ && text.find('\\') == std::string::npos;
    at_ = close;
    return *this;
  }
  // Reads `key` and its object, which ends just before the last character of the text. `object` is
  // empty if there is no such key.
  OwnText& read_last_object(std::string_view key, std::string_view& object) {
    object = {};
    if (!good_ || !std::string_view(at_, end_).starts_with(key)) return *this;
    at_ += key.size();
    const char* const close = std::max(at_, end_ - 1);
    object = {at_, close};
    at_ = close;
    return *this;
  }
  bool at_end() const { return good_ && at_ == end_; }

 private:
  const char* at_;
  const char* end_;
  bool good_ = true;
};

bool read_effort(OwnText& text, CellResult& cell) {
  int64_t microseconds = 0;
  std::string_view device, program;
  text.skip(",\"microseconds\":").read(microseconds).skip(",\"attempts\":").read(cell.attempts);
  text.skip(",\"device\":\"").read_plain(device).skip("\"");
  text.read_last_object(",\"program\":", program).skip("}");
  cell.seconds = static_cast<double>(microseconds) * 1e-6;
  if (device != cell.device.str()) cell.device = std::string(device);
  if (program != cell.program.str()) cell.program = std::string(program);
  return text.at_end();
}

bool read_own_outcome(const std::string& payload, CellResult& cell) {
  OwnText text(payload);
  text.skip("{\"loss\":").read(cell.outcome.value).skip(",\"train_loss\":");
  text.read_or_null(cell.outcome.train_loss).skip(",\"steps\":").read(cell.outcome.steps);
  return read_effort(text, cell);
}

bool read_own_tally(const std::string& payload, CellResult& cell) {
  OwnText text(payload);
  std::string_view loss, loss_squared;
  text.skip("{\"tally\":{\"guesses\":").read(cell.tally.guesses);
  text.skip(",\"accepted\":").read(cell.tally.accepted);
  text.skip(",\"non_finite\":").read(cell.tally.non_finite);
  text.skip(",\"loss\":\"").read_plain(loss).skip("\",\"loss_squared\":\"");
  text.read_plain(loss_squared).skip("\"}");
  if (!read_effort(text, cell)) return false;
  cell.tally.loss = FixedSum::parse(std::string(loss));
  cell.tally.loss_squared = FixedSum::parse(std::string(loss_squared));
  return true;
}

double number_or_nan(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

void read_parsed(const std::string& payload, bool guessed, CellResult& cell) {
  const auto object = nlohmann::json::parse(payload);
  cell.attempts = object.at("attempts").get<int64_t>();
  cell.seconds = static_cast<double>(object.at("microseconds").get<int64_t>()) * 1e-6;
  cell.device = object.at("device").get<std::string>();
  cell.program = object.contains("program") ? object.at("program").dump() : std::string();
  if (guessed) {
    cell.tally = Tally::parse(object.at("tally").dump());
    return;
  }
  if (object.contains("pruned")) {
    const auto& pruned = object.at("pruned");
    cell.pruned =
        std::make_shared<const Pruned>(Pruned{.step = pruned.at("step").get<int64_t>(),
                                              .value = pruned.at("value").get<double>(),
                                              .median = pruned.at("median").get<double>()});
    return;
  }
  cell.outcome = {.value = object.at("loss").get<double>(),
                  .train_loss = number_or_nan(object.at("train_loss")),
                  .steps = object.at("steps").get<int64_t>()};
  if (object.contains("more")) object.at("more").get_to(cell.outcome.more);
}

}  // namespace

jobs::Result guess_result(const PlannedCell& planned, const Tally& tally, const Effort& effort) {
  if (!planned.is_whole(tally))
    return failed(kLostGuesses, lost_guesses_text(planned, tally), effort);
  if (tally.accepted > 0 && tally.accepted == tally.non_finite)
    return failed(kNotFinite,
                  fmt::format("no accepted guess has a finite loss: 0 of {}", tally.accepted),
                  effort);
  nlohmann::ordered_json object;
  object["tally"] = nlohmann::ordered_json::parse(tally.json());
  put(object, effort);
  return {.kind = tally.accepted > 0 ? jobs::ResultKind::Value : jobs::ResultKind::Censored,
          .payload = object.dump(),
          .failure = {}};
}

jobs::Result outcome_result(const CellOutcome& outcome, const Effort& effort) {
  nlohmann::ordered_json object;
  if (outcome.pruned) {
    object["pruned"] = {{"step", outcome.pruned->step},
                        {"value", outcome.pruned->value},
                        {"median", outcome.pruned->median}};
    object["at_step"] = outcome.pruned->value;
    put(object, effort);
    if (!outcome.program.empty())
      object["program"] = nlohmann::ordered_json::parse(outcome.program);
    return {.kind = jobs::ResultKind::Censored, .payload = object.dump(), .failure = {}};
  }
  if (!std::isfinite(outcome.value))
    return failed(kNotFinite,
                  outcome.steps > 0
                      ? fmt::format("the loss after {} steps is not a finite number", outcome.steps)
                      : "the value is not a finite number",
                  effort);
  object["loss"] = outcome.value;
  object["train_loss"] = outcome.train_loss;  // NaN is written as null
  object["steps"] = outcome.steps;
  if (!outcome.more.empty()) object["more"] = outcome.more;
  if (std::isfinite(outcome.at_step)) object["at_step"] = outcome.at_step;
  put(object, effort);
  if (!outcome.program.empty()) object["program"] = nlohmann::ordered_json::parse(outcome.program);
  return {.kind = jobs::ResultKind::Value, .payload = object.dump(), .failure = {}};
}

CellResult cell_result(const PlannedCell& planned, const jobs::TaskRecord& record,
                       const LikelyTexts& likely) {
  CellResult cell;
  cell.cell = planned.cell;
  cell.planned_guesses = planned.guesses;
  if (!record.result) return cell;
  cell.finished_ms = record.finished_ms;
  if (record.result->kind == jobs::ResultKind::Failed) {
    cell.state = CellState::Failed;
    cell.failure = std::make_shared<const jobs::Failure>(record.result->failure);
    cell.attempts = cell.failure->attempt;
    return cell;
  }
  cell.device = likely.device;
  cell.program = likely.program;
  const std::string& payload = record.result->payload;
  const bool guessed = planned.guesses > 0;
  try {
    if (!(guessed ? read_own_tally(payload, cell) : read_own_outcome(payload, cell)))
      read_parsed(payload, guessed, cell);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("the result of task {} is damaged: {}", record.id, error.what()),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  }
  if (guessed && !planned.is_whole(cell.tally)) {
    cell.state = CellState::Failed;
    jobs::Failure lost{.kind = kLostGuesses, .message = lost_guesses_text(planned, cell.tally)};
    cell.failure = std::make_shared<const jobs::Failure>(std::move(lost));
    return cell;
  }
  cell.state =
      record.result->kind == jobs::ResultKind::Censored ? CellState::Censored : CellState::Value;
  if (cell.state == CellState::Value) cell.value = guessed ? cell.tally.mean() : cell.outcome.value;
  return cell;
}

std::string device_name() {
  const std::string name = cpu_name();
  return fmt::format("{}, {} of {} cores", name.empty() ? "CPU" : name, usable_cpus(),
                     std::thread::hardware_concurrency());
}

}  // namespace convoy::sweep
