// SPDX-License-Identifier: Apache-2.0
//
// Records finished ranges, failures and final results.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "convoy/core/jobs/sql/store_tables.h"
#include "convoy/core/jobs/sql/transaction.h"

namespace convoy::jobs {
namespace {

// Indices of `items` by task number: the order in which tasks are locked.
template <class Items, class TaskOf>
std::map<int64_t, std::vector<size_t>> by_task(const Items& items, TaskOf task_of) {
  std::map<int64_t, std::vector<size_t>> groups;
  for (size_t index = 0; index < items.size(); ++index)
    groups[task_of(items[index])].push_back(index);
  return groups;
}

}  // namespace

std::vector<Receipt> SqlStore::complete(std::span<const Completion> completions,
                                        const Merge& merge) {
  return hand_in({}, completions, merge).receipts;
}

HandedIn SqlStore::hand_in(std::span<const NewNote> notes, std::span<const Completion> completions,
                           const Merge& merge) {
  struct Parts {
    std::vector<size_t> notes, completions;
  };
  return write(static_cast<int64_t>(notes.size() + completions.size()), [&] {
    HandedIn handed{.kept = std::vector<bool>(notes.size(), false),
                    .receipts = std::vector<Receipt>(completions.size())};
    // All calls lock tasks in this order, so that two calls cannot deadlock.
    std::map<int64_t, Parts> tasks;
    for (size_t index = 0; index < notes.size(); ++index)
      tasks[notes[index].lease.task].notes.push_back(index);
    for (size_t index = 0; index < completions.size(); ++index)
      tasks[completions[index].lease.task].completions.push_back(index);
    if (!notes.empty() && !has_notes_table()) {
      make_notes_table(*session_);
      has_notes_table_ = true;
    }
    for (const auto& [task, parts] : tasks) {
      if (!parts.notes.empty()) keep_notes(task, parts.notes, notes, handed.kept);
      if (!parts.completions.empty())
        complete_task(task, parts.completions, completions, merge, handed.receipts);
    }
    return handed;
  });
}

void SqlStore::complete_task(int64_t number, std::span<const size_t> which,
                             std::span<const Completion> completions, const Merge& merge,
                             std::vector<Receipt>& receipts) {
  std::optional<TaskRow> task = locked_task(number);
  if (!task) return;
  std::vector<Part> parts;
  const Result* result = nullptr;
  for (const size_t index : which) {
    const Completion& item = completions[index];
    const std::optional<RangeRow> range =
        task->state == TaskState::Done ? std::nullopt : held_range(item.lease);
    if (!range) continue;
    const int64_t count = item.count.value_or(range->count);
    CONVOY_INVARIANT(count > 0 && count <= range->count, "{} of {} units completed", count,
                     range->count);
    remove_range(range->number);
    if (count < range->count) {
      RangeRow rest = *range;
      rest.first += count;
      rest.count -= count;
      rest.attempt = 0;
      rest.owner.clear();
      if (rest.expires_ms != kParked) rest.expires_ms = 0;
      insert_range(rest);
    }
    task->units_done += count;
    parts.push_back({.first = range->first, .count = count, .payload = item.payload});
    if (item.result) result = &*item.result;
    receipts[index].counted = true;
  }
  for (const size_t index : which) {
    receipts[index].units_done = task->units_done;
    receipts[index].units = task->units;
  }
  if (parts.empty()) return;
  if (task->units_done > task->units)
    throw_damaged(session_->name(), fmt::format("task {} has too many finished units", number));
  const bool last = task->units_done == task->units;
  if (last && result != nullptr && finish_task(*task, *result)) return;
  std::sort(parts.begin(), parts.end(),
            [](const Part& left, const Part& right) { return left.first < right.first; });
  std::vector<Part> merged;
  for (Part& part : parts) {
    if (merge && !merged.empty() && merged.back().first + merged.back().count == part.first) {
      merged.back().payload = merge(merged.back().payload, part.payload);
      merged.back().count += part.count;
    } else {
      merged.push_back(std::move(part));
    }
  }
  for (Part& part : merged) add_part(*task, std::move(part), merge);
  update_task(*task);
}

// Joins the part with the finished ranges before and after it. A task then has about as many rows
// as ranges were ever leased at once.
void SqlStore::add_part(const TaskRow& task, Part part, const Merge& merge) {
  const auto neighbour = [&](std::string_view sql) -> std::optional<Part> {
    if (part.count == task.units) return std::nullopt;
    const std::vector<SqlRow> rows = session_->run(sql, {task.number, part.first});
    if (rows.empty()) return std::nullopt;
    return decode_part(task.number, rows[0], session_->name());
  };
  const std::optional<Part> left = neighbour(
      "SELECT first, count, payload, crc FROM convoy_parts WHERE task = $1 AND first < $2 "
      "ORDER BY first DESC LIMIT 1");
  const std::optional<Part> right = neighbour(
      "SELECT first, count, payload, crc FROM convoy_parts WHERE task = $1 AND first >= $2 "
      "ORDER BY first LIMIT 1");
  const int64_t end = part.first + part.count;
  if ((left && left->first + left->count > part.first) || (right && right->first < end))
    throw_damaged(session_->name(), fmt::format("finished ranges of task {} overlap", task.number));
  const auto remove = [&](const Part& old) {
    session_->run("DELETE FROM convoy_parts WHERE task = $1 AND first = $2",
                  {task.number, old.first});
  };
  if (merge && left && left->first + left->count == part.first) {
    remove(*left);
    part = {.first = left->first,
            .count = left->count + part.count,
            .payload = merge(left->payload, part.payload)};
  }
  if (merge && right && right->first == end) {
    remove(*right);
    part.count += right->count;
    part.payload = merge(part.payload, right->payload);
  }
  session_->run(
      "INSERT INTO convoy_parts(task, first, count, payload, crc) VALUES($1, $2, $3, $4, $5)",
      {task.number, part.first, part.count, Bytes{part.payload}, crc_of(task.number, part)});
}

std::vector<FailOutcome> SqlStore::fail(std::span<const RangeFailure> failures, int max_attempts) {
  return write(static_cast<int64_t>(failures.size()), [&] {
    std::vector<FailOutcome> outcomes(failures.size(), FailOutcome::NotCounted);
    for (const auto& [number, which] :
         by_task(failures, [](const RangeFailure& item) { return item.lease.task; })) {
      std::optional<TaskRow> task = locked_task(number);
      for (const size_t index : which) {
        if (!task || task->state != TaskState::Open) continue;
        const std::optional<RangeRow> range = held_range(failures[index].lease);
        if (!range) continue;
        reopen_range(*range, range->attempt);
        outcomes[index] = FailOutcome::Retry;
        if (range->attempt < max_attempts) continue;
        Failure failure = failures[index].failure;
        failure.attempt = static_cast<int>(range->attempt);
        fail_task(*task, failure);
        outcomes[index] = FailOutcome::TaskFailed;
      }
    }
    return outcomes;
  });
}

// Keeps the task's ranges: finished ranges count when the task is reopened.
void SqlStore::fail_task(TaskRow& task, const Failure& failure) {
  finish_task(task, {.kind = ResultKind::Failed, .payload = {}, .failure = failure});
}

bool SqlStore::finish_task(TaskRow& task, const Result& result, int64_t finished_ms) {
  if (task.state != TaskState::Open) return false;
  const bool failed = result.kind == ResultKind::Failed;
  session_->run(
      "INSERT INTO convoy_results(task, kind, payload, failure, crc) VALUES($1, $2, $3, $4, $5)",
      encode_result(task.number, {result, finished_ms == 0 ? now_ms() : finished_ms}));
  task.state = failed ? TaskState::Failed : TaskState::Done;
  update_task(task);
  const std::vector<SqlRow> rows =
      task.units == 1 && task.units_done == 1
          ? std::vector<SqlRow>()
          : session_->run("SELECT " CONVOY_RANGE_COLUMNS " FROM convoy_ranges WHERE task = $1",
                          {task.number});
  for (const SqlRow& row : rows) {
    RangeRow range = decode_range(row, session_->name());
    if (!failed) {
      remove_range(range.number);
      continue;
    }
    range.expires_ms = kParked;
    session_->run("UPDATE convoy_ranges SET expires = $2, crc = $3 WHERE number = $1",
                  {range.number, kParked, crc_of(range)});
  }
  if (!failed) {
    session_->run("DELETE FROM convoy_parts WHERE task = $1", {task.number});
    drop_notes(task.number);
  }
  return true;
}

std::vector<bool> SqlStore::finish(std::span<const Finish> results) {
  return write(static_cast<int64_t>(results.size()), [&] {
    std::vector<bool> finished(results.size(), false);
    for (const auto& [number, which] :
         by_task(results, [](const Finish& item) { return item.task; })) {
      std::optional<TaskRow> task = locked_task(number);
      CONVOY_INVARIANT(task.has_value(), "there is no task {}", number);
      for (const size_t index : which)
        finished[index] = finish_task(*task, results[index].result, results[index].finished_ms);
    }
    return finished;
  });
}

// If a task failed although all its units were done, it failed as a whole, so all its units are
// done again.
void SqlStore::reopen_units(TaskRow& task) {
  if (task.units_done == task.units) {
    session_->run("DELETE FROM convoy_ranges WHERE task = $1", {task.number});
    session_->run("DELETE FROM convoy_parts WHERE task = $1", {task.number});
    task.next_unit = task.units_done = 0;
    return;
  }
  const std::vector<SqlRow> rows = session_->run(
      "SELECT " CONVOY_RANGE_COLUMNS " FROM convoy_ranges WHERE task = $1", {task.number});
  for (const SqlRow& row : rows) {
    RangeRow range = decode_range(row, session_->name());
    range.expires_ms = 0;
    reopen_range(range, 0);
  }
}

int64_t SqlStore::reopen_failed(int64_t group) {
  return write(0, [&] {
    const std::vector<SqlRow> rows = session_->run(
        "SELECT " CONVOY_TASK_COLUMNS
        " FROM convoy_tasks WHERE group_number = $1 AND state = 2 ORDER BY number {FOR UPDATE}",
        {group});
    for (const SqlRow& row : rows) {
      TaskRow task = decode_task(row, session_->name());
      reopen_units(task);
      session_->run("DELETE FROM convoy_results WHERE task = $1", {task.number});
      task.state = TaskState::Open;
      update_task(task);
    }
    return static_cast<int64_t>(rows.size());
  });
}

int64_t SqlStore::redo(std::span<const int64_t> tasks) {
  // Tasks are locked in the same order as in every other call.
  const std::set<int64_t> numbers(tasks.begin(), tasks.end());
  return write(static_cast<int64_t>(numbers.size()), [&] {
    make_former_table(*session_);
    int64_t reopened = 0;
    for (const int64_t number : numbers) {
      std::optional<TaskRow> task = locked_task(number);
      if (!task || task->state == TaskState::Open) continue;
      put_result_aside(number);
      session_->run("DELETE FROM convoy_ranges WHERE task = $1", {number});
      session_->run("DELETE FROM convoy_parts WHERE task = $1", {number});
      drop_notes(number);
      task->next_unit = task->units_done = 0;
      task->state = TaskState::Open;
      update_task(*task);
      ++reopened;
    }
    return reopened;
  });
}

void SqlStore::put_result_aside(int64_t task) {
  const std::vector<SqlRow> rows = session_->run(
      "SELECT kind, payload, failure, crc FROM convoy_results WHERE task = $1", {task});
  if (rows.empty())
    throw_damaged(session_->name(), fmt::format("task {} and its result do not agree", task));
  ResultRow row = decode_result(task, rows[0], session_->name());
  session_->run(
      "INSERT INTO convoy_former(task, kind, payload, failure, replaced, crc) "
      "VALUES($1, $2, $3, $4, $5, $6)",
      encode_former({.task = task,
                     .result = std::move(row.result),
                     .finished_ms = row.finished_ms,
                     .replaced_ms = now_ms()}));
  session_->run("DELETE FROM convoy_results WHERE task = $1", {task});
}

std::vector<FormerResult> SqlStore::former_results(int64_t group) {
  const std::vector<SqlRow> rows = read([&] {
    if (!session_->has_table("convoy_former")) return std::vector<SqlRow>();
    return session_->run(
        "SELECT f.task, f.kind, f.payload, f.failure, f.replaced, f.crc FROM convoy_former f "
        "CROSS JOIN convoy_tasks t WHERE t.number = f.task AND t.group_number = $1 "
        "ORDER BY f.number",
        {group});
  });
  std::vector<FormerResult> former;
  for (const SqlRow& row : rows) former.push_back(decode_former(row, session_->name()));
  return former;
}

}  // namespace convoy::jobs
