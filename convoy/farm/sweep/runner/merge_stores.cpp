// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/merge_stores.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/runner/sweep_settings.h"

namespace convoy::sweep {
namespace {

constexpr size_t kTogether = 10'000;  // results per transaction

struct OtherTask {
  int64_t number = 0;
  bool is_open = true;
};

std::unordered_map<std::string, OtherTask> tasks_by_id(jobs::JobStore& store, int64_t group) {
  std::unordered_map<std::string, OtherTask> tasks;
  store.for_each_task(group, [&](const jobs::TaskRecord& task) {
    tasks[task.id] = {.number = task.number, .is_open = task.state == jobs::TaskState::Open};
  });
  return tasks;
}

void finish_all(jobs::JobStore& store, std::vector<jobs::Finish>& results, MergeReport& report) {
  const std::vector<bool> taken = store.finish(results);
  report.results += std::count(taken.begin(), taken.end(), true);
  results.clear();
}

void merge_group(jobs::JobStore& from, const jobs::Group& group, jobs::JobStore& into,
                 MergeReport& report) {
  const int64_t number =
      into.register_group(group.name, group.workload, group.version).group.number;
  std::vector<jobs::NewTask> tasks;
  from.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
    tasks.push_back(
        {.parameters = task.parameters, .units = task.units, .priority = task.priority});
  });
  report.cells += static_cast<int64_t>(tasks.size());
  report.added += into.add(number, tasks);
  into.reopen_failed(number);
  const auto others = tasks_by_id(into, number);
  std::vector<jobs::Finish> results;
  from.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
    if (task.state != jobs::TaskState::Done) return;
    const OtherTask& other = others.at(task.id);
    if (!other.is_open) {
      ++report.known;
      return;
    }
    results.push_back(
        {.task = other.number, .result = *task.result, .finished_ms = task.finished_ms});
    if (results.size() >= kTogether) finish_all(into, results, report);
  });
  if (!results.empty()) finish_all(into, results, report);
}

// The label of a name: "ssm" for "ssm-1a2b3c4d5e6f".
std::string label_of(const std::string& name) { return name.substr(0, name.rfind('-')); }

// Equal for parts of one sweep. It holds the label, the workload, the version, and the cells
// without their places.
using Kind = std::vector<std::string>;

// Throws the errors of `make`.
Kind kind_of(jobs::JobStore& store, const SweepName& name, const WorkloadMaker& make) {
  const auto workload = make(name.workload, name.version);
  std::set<std::string> settings;
  PlannedCellReader reader;
  SharedText last;
  std::string last_rest;
  for (const jobs::Group& group : stored_sweep(store, name).groups)
    store.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
      PlannedCell planned = reader.read(task.parameters);
      planned.cell.seed = 0;
      std::string rest;
      planned.append_rest(rest);
      if (last.shares(planned.cell.parameters) && rest == last_rest) return;
      last = planned.cell.parameters;
      last_rest = rest;
      settings.insert(without_place(planned, *workload).parameters());
    });
  Kind kind = {label_of(name.name), name.workload, name.version};
  kind.insert(kind.end(), settings.begin(), settings.end());
  return kind;
}

// A plan of the distinct cells of all parts. Cells of one choice of values follow each other,
// ordered by seed. The plan has no cells if two cells have the same place and seed but different
// data.
SweepPlan plan_of_all(jobs::JobStore& store, const std::vector<SweepName>& parts,
                      const Workload& workload) {
  SweepPlan plan{.label = label_of(parts.front().name),
                 .workload = parts.front().workload,
                 .mode = "",
                 .version = parts.front().version,
                 .cells = {}};
  std::unordered_map<std::string, size_t> places;
  std::map<std::pair<size_t, int64_t>, PlannedCell> cells;
  PlannedCellReader reader;
  bool are_parts = true;
  for (const SweepName& part : parts)
    for (const jobs::Group& group : stored_sweep(store, part).groups)
      store.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
        PlannedCell planned = reader.read(task.parameters);
        planned.priority = task.priority;
        auto parameters = nlohmann::json::parse(planned.cell.parameters.str());
        for (const std::string& name : workload.data_of_seeds()) parameters.erase(name);
        const size_t place =
            places.try_emplace(planned.cell.method + parameters.dump(), places.size())
                .first->second;
        const auto& known = cells.try_emplace({place, planned.cell.seed}, planned).first->second;
        are_parts = are_parts && known.cell.parameters == planned.cell.parameters;
      });
  if (are_parts)
    for (auto& [place, planned] : cells) plan.cells.push_back(std::move(planned));
  return plan;
}

}  // namespace

MergeReport merge_store(jobs::JobStore& from, jobs::JobStore& into) {
  MergeReport report;
  std::set<std::string> sweeps;
  for (const jobs::Group& group : from.groups()) {
    if (!group.problem.empty()) {
      report.skipped.push_back(group.name);
      continue;
    }
    merge_group(from, group, into, report);
    const std::string name = group.name.substr(0, group.name.rfind('/'));
    sweeps.insert(name + group.version);
    report.names.insert(name);
  }
  into.sync();
  report.sweeps = static_cast<int64_t>(sweeps.size());
  return report;
}

std::vector<JoinedSweep> join_sweeps(jobs::JobStore& into, const std::set<std::string>& names,
                                     const WorkloadMaker& make) {
  std::map<Kind, std::vector<SweepName>> kinds;
  for (const SweepName& one : stored_sweeps(into)) {
    if (!one.problem.empty()) continue;
    try {
      kinds[kind_of(into, one, make)].push_back(one);
    } catch (const ConfigError&) {
      // The workload belongs to a newer Convoy, so its axes are unknown here.
    }
  }
  std::vector<JoinedSweep> joined;
  for (const auto& [kind, parts] : kinds) {
    const bool is_merged = std::any_of(parts.begin(), parts.end(), [&](const SweepName& part) {
      return names.contains(part.name);
    });
    if (parts.size() < 2 || !is_merged) continue;
    const auto workload = make(parts.front().workload, parts.front().version);
    const SweepPlan plan = plan_of_all(into, parts, *workload);
    if (plan.cells.empty()) continue;
    store_plan(into, plan);
    const bool is_part = std::any_of(parts.begin(), parts.end(), [&](const SweepName& part) {
      return part.name == plan.name();
    });
    joined.push_back({.name = plan.name(),
                      .sweeps = std::ssize(parts) - (is_part ? 1 : 0),
                      .cells = std::ssize(plan.cells)});
  }
  into.sync();
  return joined;
}

}  // namespace convoy::sweep
