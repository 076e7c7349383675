// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/merge_stores.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace convoy::sweep {
namespace {

constexpr size_t kTogether = 10'000;  // results of one transaction

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
    sweeps.insert(group.name.substr(0, group.name.rfind('/')) + group.version);
  }
  into.sync();
  report.sweeps = static_cast<int64_t>(sweeps.size());
  return report;
}

}  // namespace convoy::sweep
