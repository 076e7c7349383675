// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/sweep_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "convoy/apps/page/result_files.h"
#include "convoy/apps/page/sweep_report.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/results/figure.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kStoreName = "sweep.db";
constexpr int kDepth = 3;

void collect(const fs::path& folder, int depth, std::set<fs::path>& found) {
  std::error_code unreadable;
  if (fs::is_regular_file(folder / "events.jsonl", unreadable)) return;  // a run
  if (fs::is_regular_file(folder / kStoreName, unreadable)) found.insert(folder / kStoreName);
  if (depth == 0) return;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (entry.is_directory(unreadable) && !entry.is_symlink(unreadable) &&
        !entry.path().filename().string().starts_with('.'))
      collect(entry.path(), depth - 1, found);
}

std::string prefix_of(const fs::path& store, const fs::path& parent) {
  const std::string folder = store.parent_path().lexically_relative(parent).generic_string();
  return folder.empty() || folder == "." ? "" : folder + "/";
}

std::string state_of(const WatchedSweep& sweep) {
  if (!sweep.problem.empty()) return "failed";
  if (sweep.counts.open > 0) return sweep.at_work ? "running" : "stopped";
  return sweep.counts.failed > 0 ? "failed" : "finished";
}

json summary_of(const WatchedSweep& sweep) {
  json line = {{"kind", "sweep"},
               {"name", sweep.name},
               {"state", state_of(sweep)},
               {"workload", sweep.stored.workload},
               {"steps", sweep.counts.done + sweep.counts.failed},
               {"total_steps", sweep.counts.all()},
               {"failed", sweep.counts.failed},
               {"created", static_cast<double>(sweep.stored.created_ms) * 1e-3},
               {"updated", sweep.updated_seconds}};
  if (!sweep.problem.empty()) line["failure"] = sweep.problem;
  return line;
}

// The file belongs to another sweep of the store when it contains that sweep's name.
bool is_of_another(const std::string& file, const WatchedSweep& sweep,
                   const std::vector<WatchedSweep>& all) {
  if (file.find(sweep.stored.name) != std::string::npos) return false;
  return std::any_of(all.begin(), all.end(), [&](const WatchedSweep& other) {
    return !other.stored.name.empty() && file.find(other.stored.name) != std::string::npos;
  });
}

}  // namespace

void SweepIndex::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (refreshed_ != decltype(refreshed_){} && now - refreshed_ < std::chrono::seconds(1)) return;
  std::set<fs::path> there;
  collect(folder_, kDepth, there);
  for (const fs::path& file : there) {
    auto& store = stores_[file];
    if (!store) store = std::make_unique<WatchedStore>(file, prefix_of(file, folder_));
    store->read_on();
  }
  std::erase_if(stores_, [&](const auto& store) { return !there.contains(store.first); });
  refreshed_ = std::chrono::steady_clock::now();
}

SweepIndex::Place SweepIndex::find(const std::string& name) {
  refresh();
  for (const auto& [file, store] : stores_)
    for (const WatchedSweep& sweep : store->sweeps())
      if (sweep.name == name) return {.store = store.get(), .sweep = &sweep};
  return {};
}

std::vector<json> SweepIndex::list() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<json> lines;
  for (const auto& [file, store] : stores_)
    for (const WatchedSweep& sweep : store->sweeps()) lines.push_back(summary_of(sweep));
  return lines;
}

json SweepIndex::details(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const Place place = find(name);
  if (place.sweep == nullptr) return nullptr;
  json all = {{"summary", summary_of(*place.sweep)}, {"store", place.store->file().string()}};
  if (!place.sweep->problem.empty()) return all;
  try {
    all.update(sweep_report(place.store->results(*place.sweep)));
  } catch (const Error& error) {
    all["summary"]["failure"] = error.sentence();
  }
  json figures = json::array(), tables = json::array();
  for (const ResultFile& file : result_files(place.store->folder())) {
    if (is_of_another(file.name, *place.sweep, place.store->sweeps())) continue;
    json& list = file.kind == ResultKind::Figure ? figures : tables;
    list.push_back(
        {{"name", file.name}, {"bytes", file.size_bytes}, {"changed", file.changed_seconds}});
  }
  all["figures"] = figures;
  all["tables"] = tables;
  return all;
}

std::optional<std::string> SweepIndex::figure_svg(const std::string& name, bool log_y) {
  const std::lock_guard lock(mutex_);
  const Place place = find(name);
  if (place.sweep == nullptr || !place.sweep->problem.empty()) return std::nullopt;
  return sweep::figure_svg(place.store->results(*place.sweep),
                           {.y_scale = log_y ? charts::AxisScale::Log : charts::AxisScale::Auto});
}

std::optional<std::string> SweepIndex::file(const std::string& name, const std::string& file) {
  const std::lock_guard lock(mutex_);
  const Place place = find(name);
  if (place.sweep == nullptr) return std::nullopt;
  return read_result_file(place.store->folder(), file);
}

}  // namespace convoy::page
