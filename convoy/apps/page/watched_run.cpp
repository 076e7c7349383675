// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/watched_run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/json_member.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::page {
namespace {

using nlohmann::json;
using telemetry::RunState;

// Fields that every event has and no chart needs.
const std::set<std::string> kNoFigures = {"time", "step", "event", "epoch", "rows", "tokens"};

// Number of recent steps from which the speed is computed: enough to include evaluations and
// checkpoints, few enough to follow a change of speed.
constexpr size_t kMostPaceSteps = 256;

std::string group_of(const json& event, const std::string& word) {
  return word == "step" ? "train" : member_or(event, "split", std::string("eval"));
}

}  // namespace

WatchedRun::WatchedRun(std::filesystem::path folder, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      events_(folder_ / "events.jsonl"),
      devices_(folder_) {}

void WatchedRun::forget() {
  state_ = RunState::Empty;
  failure_.clear();
  task_.clear();
  step_ = total_steps_ = 0;
  created_seconds_ = updated_seconds_ = 0;
  evaluated_ = false;
  curves_.clear();
  pace_.clear();
}

bool WatchedRun::read_on(std::chrono::steady_clock::time_point deadline) {
  return events_.read([this] { forget(); }, [this](const std::string& line) { add_line(line); },
                      deadline);
}

void WatchedRun::add_line(const std::string& line) {
  const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return;
  const std::string word = member_or(event, "event", std::string());
  updated_seconds_ = member_or(event, "time", updated_seconds_);
  if (created_seconds_ == 0) created_seconds_ = updated_seconds_;
  if (word == "start") {
    add_start(event);
  } else if (word == "step" || word == "eval") {
    add_figures(group_of(event, word), event);
  } else if (word == "failure") {
    state_ = RunState::Failed;
    failure_ = member_or(event, "message", std::string());
  } else if (word == "end") {
    state_ = telemetry::state_of_end(member_or(event, "status", std::string()));
  }
}

void WatchedRun::add_start(const json& event) {
  state_ = RunState::Running;
  failure_.clear();
  task_ = member_or(event, "task", std::string());
  total_steps_ = member_or(event, "total_steps", int64_t{0});
  const int64_t resumed = member_or(event, "resume_step", int64_t{-1});
  for (auto& [tag, curve] : curves_) curve.cut_after(resumed);
  step_ = std::min(step_, std::max<int64_t>(resumed, 0));
  pace_.clear();
}

void WatchedRun::add_pace(int64_t step) {
  if (pace_.size() == kMostPaceSteps)
    pace_.erase(pace_.begin(), pace_.begin() + kMostPaceSteps / 2);
  pace_.emplace_back(step, updated_seconds_);
}

std::optional<double> WatchedRun::seconds_left() const {
  if (pace_.size() < 2 || total_steps_ <= step_) return std::nullopt;
  const auto [first_step, first_seconds] = pace_.front();
  const auto [last_step, last_seconds] = pace_.back();
  if (last_step <= first_step || last_seconds <= first_seconds) return std::nullopt;
  return (last_seconds - first_seconds) / static_cast<double>(last_step - first_step) *
         static_cast<double>(total_steps_ - step_);
}

void WatchedRun::add_figures(const std::string& group, const json& event) {
  const auto step = event.find("step");
  if (step == event.end() || !step->is_number_integer()) return;
  const auto at = step->get<int64_t>();
  if (group == "train") {
    step_ = std::max(step_, at);
    add_pace(at);
  }
  for (const auto& [key, value] : event.items()) {
    if (kNoFigures.contains(key)) continue;
    if (value.is_number() || value.is_null()) {
      curves_[group + "/" + key].add(at, value.is_null() ? NAN : value.get<double>());
    } else if (value.is_array() && key.starts_with("rank_")) {
      for (size_t rank = 0; rank < value.size(); ++rank)
        if (value[rank].is_number())
          curves_["rank/" + std::to_string(rank) + "/" + key.substr(5)].add(
              at, value[rank].get<double>());
    }
  }
  const auto loss = event.find("loss");
  if (group != "eval" || loss == event.end() || !loss->is_number()) return;
  const auto value = loss->get<double>();
  if (!evaluated_ || value < best_evaluation_) best_evaluation_ = value;
  evaluated_ = true;
}

RunState WatchedRun::state() const {
  return telemetry::state_now(state_, telemetry::run_folder_is_held(folder_));
}

json WatchedRun::summary() const {
  const auto last = [this](const char* tag) -> json {
    const auto found = curves_.find(tag);
    if (found == curves_.end() || !std::isfinite(found->second.last())) return nullptr;
    return found->second.last();
  };
  const RunState now = state();
  const std::optional<double> left = now == RunState::Running ? seconds_left() : std::nullopt;
  const bool counts_samples = curves_.contains("train/samples_per_second");
  json line = {
      {"kind", task_ == "process" ? "process" : "train"},
      {"name", name_},
      {"state", telemetry::run_state_word(now)},
      {"steps", step_},
      {"total_steps", total_steps_},
      {"loss", last("train/loss")},
      {"eval_loss", evaluated_ ? json(best_evaluation_) : json(nullptr)},
      {"speed", last(counts_samples ? "train/samples_per_second" : "train/tokens_per_second")},
      {"speed_unit", counts_samples ? "samples/s" : "tokens/s"},
      {"seconds_left", left ? json(*left) : json(nullptr)},
      {"failed", last("train/rows_failed")},
      {"created", created_seconds_},
      {"updated", updated_seconds_}};
  if (const double share = events_.share_read(); share < 1) {
    line["state"] = "reading";
    line["read"] = share;
  } else if (now == RunState::Failed) {
    line["failure"] = failure_.empty() ? telemetry::kEndedWithoutAWord : failure_;
  }
  return line;
}

json WatchedRun::curves() const {
  json all = json::object();
  for (const auto& [tag, curve] : curves_) all[tag] = points_of(curve);
  return all;
}

json WatchedRun::device_curves() {
  devices_.read_on();
  return devices_.curves();
}

}  // namespace convoy::page
