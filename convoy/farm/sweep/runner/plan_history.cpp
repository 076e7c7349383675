// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/plan_history.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "convoy/farm/sweep/runner/cell_outcome.h"

namespace convoy::sweep {
namespace {

// The command of a cell; empty if the cell does not run a command.
nlohmann::json command_words(const Cell& cell) {
  const auto parameters = nlohmann::json::parse(cell.parameters.str(), nullptr, false);
  return parameters.is_object() && parameters.contains("command") ? parameters["command"]
                                                                  : nlohmann::json();
}

// The mean time of the cells of one command.
class CommandSeconds {
 public:
  explicit CommandSeconds(const Cell& cell) : command_(command_words(cell)) {}

  void add(const PlannedCell& planned, const jobs::TaskRecord& task) {
    if (command_.is_null()) return;
    if (!last_.shares(planned.cell.parameters)) is_same_ = command_words(planned.cell) == command_;
    last_ = planned.cell.parameters;
    if (!is_same_) return;
    sum_ += cell_result(planned, task).seconds;
    ++count_;
  }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : std::nan(""); }

 private:
  nlohmann::json command_;
  SharedText last_;
  bool is_same_ = false;
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace

PlanHistory read_history(jobs::JobStore& store, const SweepPlan& plan) {
  std::unordered_set<std::string> done;
  std::unordered_map<std::string, int64_t> begun;  // number of guesses, by task
  CommandSeconds seconds(plan.cells.front().cell);
  const std::string name = plan.name();
  PlannedCellReader reader;
  for (const jobs::Group& group : store.groups()) {
    if (group.workload != plan.workload || group.version != plan.version || !group.problem.empty())
      continue;
    const bool is_own = group.name.starts_with(name + "/");
    store.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
      if (task.state == jobs::TaskState::Done) {
        const PlannedCell& planned = reader.read(task.parameters);
        // The result lacks guesses.
        if (cell_result(planned, task).state == CellState::Failed) return;
        done.insert(task.id);
        seconds.add(planned, task);
      } else if (is_own && task.state == jobs::TaskState::Open && task.units_done > 0) {
        begun[task.id] = task.units_done;
      }
    });
  }
  PlanHistory history;
  history.store = store.name();
  for (const PlannedCell& planned : plan.cells) {
    const jobs::NewTask task = planned.task();
    const std::string id = jobs::task_id(plan.workload, plan.version, task.parameters, task.units);
    if (done.contains(id)) continue;
    history.open.push_back(planned);
    if (const auto found = begun.find(id); found != begun.end())
      history.open.back().guesses -= found->second;
  }
  history.command_seconds = seconds.mean();
  return history;
}

}  // namespace convoy::sweep
