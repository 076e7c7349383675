// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_store.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/range_tally.h"

namespace convoy::sweep {
namespace {

using jobs::Group;
using jobs::TaskRecord;

// Splits a name such as "ssm-1a2b3c4d5e6f/gnc" at its last slash.
std::pair<std::string, std::string> split_name(const std::string& group) {
  const size_t slash = group.rfind('/');
  if (slash == std::string::npos) return {group, ""};
  return {group.substr(0, slash), group.substr(slash + 1)};
}

bool contains(const std::vector<Group>& groups, const Group& group) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const Group& one) { return one.number == group.number; });
}

struct Wanted {
  int64_t task = 0;
  int64_t after_ms = -1;  // time when its result was put aside; older results do not count
  std::optional<jobs::Finish> known = {};
};

// The result that was put aside last, by number of the task.
std::map<int64_t, jobs::FormerResult> last_former(jobs::JobStore& store, int64_t group) {
  std::map<int64_t, jobs::FormerResult> last;
  for (jobs::FormerResult& former : store.former_results(group)) {
    const int64_t task = former.task;
    last.insert_or_assign(task, std::move(former));
  }
  return last;
}

std::map<std::string, Wanted> open_tasks(jobs::JobStore& store, const StoredSweep& sweep) {
  std::map<std::string, Wanted> open;
  for (const Group& group : sweep.groups) {
    if (store.count_open(group.number, 1) == 0) continue;
    const auto former = last_former(store, group.number);
    store.for_each_task(group.number, [&](const TaskRecord& task) {
      if (task.state != jobs::TaskState::Open) return;
      const auto aside = former.find(task.number);
      open[task.id] = {.task = task.number,
                       .after_ms = aside == former.end() ? -1 : aside->second.replaced_ms};
    });
  }
  return open;
}

// Failures of other sweeps are not taken over, because this command tries such a cell again. The
// newest of several results counts.
int64_t take_over_finished(jobs::JobStore& store, const StoredSweep& sweep) {
  std::vector<Group> others;
  for (const Group& group : store.groups())
    if (group.workload == sweep.groups.front().workload &&
        group.version == sweep.groups.front().version && group.problem.empty() &&
        !contains(sweep.groups, group))
      others.push_back(group);
  if (others.empty()) return 0;
  std::map<std::string, Wanted> wanted = open_tasks(store, sweep);
  if (wanted.empty()) return 0;
  PlannedCellReader reader;
  for (const Group& group : others)
    store.for_each_task(group.number, [&](const TaskRecord& task) {
      const auto found = wanted.find(task.id);
      if (task.state != jobs::TaskState::Done || found == wanted.end()) return;
      if (cell_result(reader.read(task.parameters), task).state == CellState::Failed) return;
      Wanted& one = found->second;
      const bool newer = !one.known || task.finished_ms > one.known->finished_ms;
      if (newer && task.finished_ms > one.after_ms)
        one.known =
            jobs::Finish{.task = one.task, .result = *task.result, .finished_ms = task.finished_ms};
    });
  std::vector<jobs::Finish> known;
  for (auto& [id, one] : wanted)
    if (one.known) known.push_back(std::move(*one.known));
  const std::vector<bool> taken = store.finish(known);
  return std::count(taken.begin(), taken.end(), true);
}

jobs::TaskList tasks_of(const SweepPlan& plan, const std::string& method,
                        const std::string& digest) {
  std::vector<const PlannedCell*> cells;
  for (const PlannedCell& planned : plan.cells)
    if (planned.cell.method == method) cells.push_back(&planned);
  return {.count = static_cast<int64_t>(cells.size()),
          .task = [cells](int64_t index) { return cells[static_cast<size_t>(index)]->task(); },
          .digest = digest};
}

RangeTally tally_of(const std::vector<jobs::Part>& parts) {
  RangeTally sum;
  for (const jobs::Part& part : parts) sum.append(RangeTally::parse(part.payload));
  return sum;
}

// The parts from guess 0 up to the first gap.
RangeTally prefix_of(const std::vector<jobs::Part>& parts) {
  RangeTally sum;
  int64_t end = 0;
  for (const jobs::Part& part : parts) {
    if (part.first != end) break;
    sum.append(RangeTally::parse(part.payload));
    end += part.count;
  }
  return sum;
}

// While a cell is computed again, its known value is its former value.
void add_former(const PlannedCell& planned, const TaskRecord& task,
                const jobs::FormerResult& former, CellResult& cell) {
  if (task.state == jobs::TaskState::Done || former.result.kind != jobs::ResultKind::Value) return;
  TaskRecord before = task;
  before.result = former.result;
  before.finished_ms = former.finished_ms;
  CellResult old = cell_result(planned, before, {});
  if (old.state != CellState::Value) return;
  if (task.state == jobs::TaskState::Failed) {
    cell.former_value = old.value;
    return;
  }
  old.state = CellState::Former;
  old.reference = cell.reference;
  cell = std::move(old);
}

Effort effort_of(const RangeTally& range) {
  const std::string gpus = fmt::format("{}", fmt::join(range.gpus(), "; "));
  return {.microseconds = range.microseconds(),
          .attempts = 1,
          .device = gpus.empty() ? device_name() : gpus};
}

// The only sweep whose name begins with `beginning`; empty if there is none. Throws ConfigError if
// there are several.
std::vector<SweepName> unique_beginning(const std::vector<SweepName>& sweeps,
                                        const std::string& beginning, const std::string& version) {
  std::vector<SweepName> found;
  std::set<std::string> names;
  for (const SweepName& one : sweeps)
    if (one.name.starts_with(beginning) && (version.empty() || one.version == version)) {
      found.push_back(one);
      names.insert(one.name);
    }
  if (names.size() >= 2)
    throw ConfigError(
        fmt::format("`{}` is the beginning of {}", beginning, fmt::join(names, " and ")),
        {.hint = "write more of the name"});
  return found;
}

}  // namespace

std::vector<int64_t> StoredSweep::group_numbers() const {
  std::vector<int64_t> numbers;
  for (const Group& group : groups) numbers.push_back(group.number);
  return numbers;
}

StoredSweep store_plan(jobs::JobStore& store, const SweepPlan& plan) {
  CONVOY_INVARIANT(!plan.cells.empty(), "a sweep without cells");
  StoredSweep sweep;
  const std::string digest = plan.digest();
  const std::string name = plan.name_of(digest);
  sweep.methods = plan.methods();
  for (const std::string& method : sweep.methods) {
    const jobs::GroupRegistration registered =
        store.register_group(fmt::format("{}/{}", name, method), plan.workload, plan.version);
    sweep.groups.push_back(registered.group);
    for (const Group& other : registered.others)
      if (std::find(sweep.other_versions.begin(), sweep.other_versions.end(), other.version) ==
          sweep.other_versions.end())
        sweep.other_versions.push_back(other.version);
    sweep.added += store.add(registered.group.number, tasks_of(plan, method, digest));
  }
  sweep.reused = take_over_finished(store, sweep);
  return sweep;
}

int64_t retry_failed(jobs::JobStore& store, const StoredSweep& sweep) {
  if (!all_leases(store, sweep).empty()) return 0;
  int64_t reopened = 0;
  for (const Group& group : sweep.groups) reopened += store.reopen_failed(group.number);
  return reopened;
}

int64_t redo_cells(jobs::JobStore& store, const StoredSweep& sweep,
                   const std::function<bool(const Cell&)>& wanted) {
  std::vector<int64_t> again;
  PlannedCellReader reader;
  for (const Group& group : sweep.groups)
    store.for_each_task(group.number, [&](const TaskRecord& task) {
      if (task.state != jobs::TaskState::Open && wanted(reader.read(task.parameters).cell))
        again.push_back(task.number);
    });
  return again.empty() ? 0 : store.redo(again);
}

std::vector<LackingCell> cells_lacking_guesses(jobs::JobStore& store, const StoredSweep& sweep) {
  std::vector<LackingCell> lacking;
  PlannedCellReader reader;
  for (const Group& group : sweep.groups)
    store.for_each_task(group.number, [&](const TaskRecord& task) {
      const PlannedCell& planned = reader.read(task.parameters);
      if (planned.guesses == 0 || (task.units_done == 0 && !task.result)) return;
      // A cell that failed as a whole begins again with its first guess.
      if (task.state == jobs::TaskState::Failed && task.units_done == task.units) return;
      LackingCell cell{.task = task.number, .planned = {}, .guesses = 0, .units = planned.guesses};
      if (task.state == jobs::TaskState::Done) {
        const Tally tally = cell_result(planned, task).tally;
        if (planned.is_whole(tally)) return;
        cell.guesses = tally.guesses;
      } else {
        cell.guesses = tally_of(store.progress(task.number)).total().guesses;
        cell.units = task.units_done;
        if (cell.guesses == cell.units) return;
      }
      cell.is_open = task.state == jobs::TaskState::Open;
      cell.planned = planned;
      lacking.push_back(std::move(cell));
    });
  return lacking;
}

int64_t compute_again(jobs::JobStore& store, const std::vector<LackingCell>& cells) {
  std::vector<int64_t> tasks;
  std::vector<jobs::Finish> open;
  for (const LackingCell& cell : cells) {
    tasks.push_back(cell.task);
    // Only a task with a result can begin again with its first guess, so an open task gets a result
    // first.
    if (cell.is_open)
      open.push_back({.task = cell.task, .result = guess_result(cell.planned, {}, {})});
  }
  if (!open.empty()) store.finish(open);
  return tasks.empty() ? 0 : store.redo(tasks);
}

int64_t finish_complete(jobs::JobStore& store, int64_t group) {
  std::vector<jobs::Finish> finished;
  for (const TaskRecord& task : store.unfinished_complete(group)) {
    const PlannedCell planned = PlannedCell::parse(task.parameters);
    const RangeTally range = tally_of(store.progress(task.number));
    finished.push_back(
        {.task = task.number,
         .result = guess_result(planned, range.stopped(planned.stop).value_or(range.total()),
                                effort_of(range))});
  }
  if (finished.empty()) return 0;
  const std::vector<bool> first = store.finish(finished);
  return std::count(first.begin(), first.end(), true);
}

bool finish_stopped(jobs::JobStore& store, const std::vector<jobs::Lease>& leases) {
  std::set<int64_t> with_rule;
  std::vector<jobs::Finish> finished;
  for (const jobs::Lease& lease : leases) {
    const PlannedCell planned = PlannedCell::parse(lease.parameters);
    if (!planned.stop.any() || !with_rule.insert(lease.task).second) continue;
    const RangeTally range = prefix_of(store.progress(lease.task));
    if (const auto tally = range.stopped(planned.stop))
      finished.push_back(
          {.task = lease.task, .result = guess_result(planned, *tally, effort_of(range))});
  }
  if (!finished.empty()) store.finish(finished);
  return !with_rule.empty();
}

std::vector<jobs::Lease> all_leases(jobs::JobStore& store, const StoredSweep& sweep) {
  std::vector<jobs::Lease> all;
  for (const Group& group : sweep.groups)
    for (jobs::Lease& lease : store.leases(group.number)) all.push_back(std::move(lease));
  return all;
}

SweepResults read_results(jobs::JobStore& store, const StoredSweep& sweep,
                          const Workload& workload) {
  SweepResults results{.workload = sweep.groups.front().workload,
                       .version = sweep.groups.front().version,
                       .axes = workload.axes(),
                       .cells = {}};
  std::vector<std::pair<size_t, int64_t>> begun;
  results.cells.reserve(static_cast<size_t>(count_cells(store, sweep)));
  PlannedCellReader reader;
  LikelyTexts known;
  for (const Group& group : sweep.groups) {
    const auto former = last_former(store, group.number);
    store.for_each_task_ahead(group.number, [&](const TaskRecord& task) {
      const PlannedCell& planned = reader.read(task.parameters);
      if (!task.result && task.units_done > 0)
        begun.emplace_back(results.cells.size(), task.number);
      CellResult& cell = results.cells.emplace_back(cell_result(planned, task, known));
      if (task.result) known = {cell.device, cell.program};
      cell.reference = workload.reference(planned.cell);
      const auto aside = former.find(task.number);
      if (aside != former.end()) add_former(planned, task, aside->second, cell);
    });
  }
  if (!results.cells.empty()) results.metrics = workload.metrics(results.cells.front().cell);
  for (const auto& [at, task] : begun) {
    const RangeTally range = tally_of(store.progress(task));
    results.cells[at].tally = range.total();
    results.cells[at].seconds = static_cast<double>(range.microseconds()) * 1e-6;
  }
  return results;
}

std::vector<SweepName> stored_sweeps(jobs::JobStore& store) {
  std::vector<SweepName> sweeps;
  for (const Group& group : store.groups()) {
    const std::string name = split_name(group.name).first;
    const auto known = std::find_if(sweeps.begin(), sweeps.end(), [&](const SweepName& one) {
      return one.name == name && one.version == group.version && one.workload == group.workload;
    });
    if (known == sweeps.end()) {
      sweeps.push_back({name, group.workload, group.version, group.created_ms, group.last_run_ms,
                        group.problem});
      continue;
    }
    known->created_ms = std::min(known->created_ms, group.created_ms);
    known->last_run_ms = std::max(known->last_run_ms, group.last_run_ms);
    if (known->problem.empty()) known->problem = group.problem;
  }
  // Sweeps without a time count as the oldest, in the order in which they were made.
  std::stable_sort(sweeps.begin(), sweeps.end(), [](const SweepName& left, const SweepName& right) {
    return left.last_run_ms < right.last_run_ms;
  });
  return sweeps;
}

std::vector<SweepName> find_sweeps(jobs::JobStore& store, const std::string& name) {
  std::vector<SweepName> found;
  std::vector<std::string> names;
  const size_t at = name.find('@');
  const std::string wanted = name.substr(0, at);
  const std::string version = at == std::string::npos ? "" : name.substr(at + 1);
  const std::vector<SweepName> sweeps = stored_sweeps(store);
  for (const SweepName& one : sweeps) {
    names.push_back(one.name);
    const bool is_named =
        wanted.empty() || one.name == wanted || one.name.starts_with(wanted + "-");
    if (is_named && (version.empty() || one.version == version)) found.push_back(one);
  }
  if (found.empty()) found = unique_beginning(sweeps, wanted, version);
  if (names.empty())
    throw DataError(fmt::format("{} holds no sweep", store.name()),
                    {.hint = "run one, or name another store"});
  if (found.empty())
    throw ConfigError(
        fmt::format("{} holds no sweep `{}`{}", store.name(), name, did_you_mean(name, names)),
        {.hint = "`convoy sweep show --list` names them"});
  return found;
}

int64_t count_cells(jobs::JobStore& store, const StoredSweep& sweep) {
  int64_t num_cells = 0;
  for (const Group& group : sweep.groups) num_cells += store.counts(group.number).all();
  return num_cells;
}

StoredSweep stored_sweep(jobs::JobStore& store, const SweepName& name) {
  StoredSweep sweep;
  for (const Group& group : store.groups()) {
    const auto [group_name, method] = split_name(group.name);
    if (group_name != name.name || group.version != name.version || group.workload != name.workload)
      continue;
    sweep.groups.push_back(group);
    sweep.methods.push_back(method);
  }
  return sweep;
}

}  // namespace convoy::sweep
