// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/run_index.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <tuple>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/runs/run_comparison.h"
#include "convoy/core/telemetry/runs/run_rollouts.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::streamoff kLogBytes = 64 << 10;
constexpr int64_t kShownSamples = 50;
constexpr std::chrono::seconds kReadEvery{1};
constexpr std::chrono::milliseconds kReadingTime{250};  // per call

// The number in "PREFIX<number>SUFFIX" of each file of the folder, in their order.
std::vector<int64_t> numbers_of_files(const fs::path& folder, const std::string& prefix,
                                      const std::string& suffix) {
  std::set<int64_t> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(suffix))
      continue;
    const std::string digits =
        name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    if (digits.size() < 18 && digits.find_first_not_of("0123456789") == std::string::npos)
      numbers.insert(std::stoll(digits));
  }
  return {numbers.begin(), numbers.end()};
}

// Logs of ranks ("rank-00.log"), workers ("worker-0.log") and programs beside them, in natural
// order: 2 before 10.
std::vector<std::string> log_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".log" && entry.is_regular_file(error) &&
        !entry.is_symlink(error))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end(), [](const std::string& left, const std::string& right) {
    const auto key = [](const std::string& name) {
      const size_t digits = std::min(name.find_first_of("0123456789"), name.size());
      const size_t behind = std::min(name.find_first_not_of("0123456789", digits), name.size());
      const std::string number = name.substr(digits, std::min<size_t>(behind - digits, 18));
      return std::make_tuple(name.substr(0, digits), number.empty() ? 0 : std::stoll(number), name);
    };
    return key(left) < key(right);
  });
  return names;
}

json lines_of(const std::vector<telemetry::ComparedValue>& lines) {
  json list = json::array();
  for (const auto& line : lines) list.push_back({{"name", line.name}, {"values", line.values}});
  return list;
}

}  // namespace

void RunIndex::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (refreshed_ != decltype(refreshed_){} && now - refreshed_ < kReadEvery) return;
  std::set<std::string> there;
  for (const fs::path& path : telemetry::find_runs(folder_)) {
    const std::string name = telemetry::run_name(path, folder_);
    there.insert(name);
    auto& run = runs_[name];
    if (!run) run = std::make_unique<WatchedRun>(path, name);
  }
  std::erase_if(runs_, [&](const auto& run) { return !there.contains(run.first); });
  // A long run does not delay the others: the next calls read the rest.
  bool all = true;
  for (const auto& [name, run] : runs_) all = run->read_on(now + kReadingTime) && all;
  refreshed_ = all ? std::chrono::steady_clock::now() : decltype(refreshed_){};
}

WatchedRun* RunIndex::find(const std::string& name) {
  refresh();
  const auto found = runs_.find(name);
  return found == runs_.end() ? nullptr : found->second.get();
}

std::vector<json> RunIndex::list() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<json> lines;
  for (const auto& [name, run] : runs_) lines.push_back(run->summary());
  return lines;
}

json RunIndex::curves(const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  json all = json::object();
  for (const std::string& name : names)
    if (const WatchedRun* run = find(name)) all[name] = run->curves();
  return all;
}

json RunIndex::device_curves(const std::string& name) {
  const std::lock_guard lock(mutex_);
  WatchedRun* run = find(name);
  return run == nullptr ? json::object() : run->device_curves();
}

json RunIndex::details(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const WatchedRun* run = find(name);
  if (run == nullptr) return nullptr;
  return {{"summary", run->summary()},
          {"folder", run->folder().string()},
          {"identity", telemetry::read_run_record(run->folder() / "run.json")},
          {"metrics", telemetry::read_run_record(run->folder() / "metrics.json")},
          {"logs", log_files(run->folder() / "logs")},
          {"samples", numbers_of_files(run->folder() / "samples", "step-", ".jsonl")},
          {"rollouts", telemetry::rollout_steps(run->folder())}};
}

std::optional<ChatModel> RunIndex::chat_model(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const WatchedRun* run = find(name);
  if (run == nullptr || run->state() == telemetry::RunState::Running) return std::nullopt;
  return page::chat_model(run->folder(), telemetry::read_run_record(run->folder() / "run.json"));
}

json RunIndex::comparison(const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  std::vector<telemetry::RunHistory> runs;
  for (const std::string& name : names) {
    const WatchedRun* run = find(name);
    if (run == nullptr) return nullptr;
    // The runs' steps are left out: the page shows them as curves, and long runs have many.
    runs.push_back({.path = run->folder(), .name = name, .state = run->state()});
  }
  if (runs.size() < 2) return nullptr;
  const telemetry::RunComparison found = telemetry::compare_runs(runs);
  return {{"runs", found.runs},
          {"settings", lines_of(found.settings)},
          {"without_settings", found.without_settings}};
}

std::string RunIndex::log(const std::string& name, const std::string& file_name) {
  const std::lock_guard lock(mutex_);
  const WatchedRun* run = find(name);
  if (run == nullptr) return {};
  const fs::path folder = run->folder() / "logs";
  const std::vector<std::string> names = log_files(folder);
  // Opens only log files that were found, so a name in a request cannot open another file.
  if (std::find(names.begin(), names.end(), file_name) == names.end()) return {};
  std::ifstream file(folder / file_name, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  const std::streamoff from = std::max<std::streamoff>(0, size - kLogBytes);
  file.seekg(from);
  std::string text(static_cast<size_t>(size - from), '\0');
  file.read(text.data(), size - from);
  text.resize(static_cast<size_t>(file.gcount()));
  if (from > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

json RunIndex::samples(const std::string& name, int64_t step) {
  const std::lock_guard lock(mutex_);
  json rows = json::array();
  const WatchedRun* run = find(name);
  if (run == nullptr) return rows;
  std::ifstream file(run->folder() / "samples" / fmt::format("step-{}.jsonl", step));
  for (std::string line; std::ssize(rows) < kShownSamples && std::getline(file, line);) {
    json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_object()) rows.push_back(std::move(row));
  }
  return rows;
}

json RunIndex::rollouts(const std::string& name, int64_t step) {
  const std::lock_guard lock(mutex_);
  json rows = json::array();
  const WatchedRun* run = find(name);
  if (run == nullptr) return rows;
  constexpr size_t kShownRollouts = 5;
  const telemetry::NotableRollouts notable =
      telemetry::notable_rollouts(run->folder(), step, kShownRollouts);
  if (notable.damage) rows.push_back({{"damage", notable.damage->sentence()}});
  for (const nlohmann::ordered_json& row : notable.rows) rows.push_back(json(row));
  return rows;
}

}  // namespace convoy::page
