// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of single tasks and ranges within a transaction, and listings of whole groups.
#include <fmt/format.h>

#include <array>
#include <future>
#include <utility>

#include "convoy/core/base/hash.h"
#include "convoy/core/jobs/sql/transaction.h"

namespace convoy::jobs {
namespace {

constexpr int64_t kTasksPerPage = 2'000;
// Tasks may hold whole texts: the first page has few tasks, and the bytes of a page decide the size
// of the next.
constexpr int64_t kTasksOfFirstPage = 100;
constexpr int64_t kBytesPerPage = 16 << 20;

TaskRecord record_of(TaskRow task) {
  return {.number = task.number,
          .group = task.group,
          .id = hex_of(task.id),
          .parameters = std::move(task.parameters),
          .units = task.units,
          .units_done = task.units_done,
          .priority = task.priority,
          .state = task.state,
          .result = {},
          .finished_ms = 0};
}

}  // namespace

std::optional<TaskRow> SqlStore::locked_task(int64_t number) {
  const std::vector<SqlRow> rows = session_->run(
      "SELECT " CONVOY_TASK_COLUMNS " FROM convoy_tasks WHERE number = $1 {FOR UPDATE}", {number});
  if (rows.empty()) return std::nullopt;
  return decode_task(rows[0], session_->name());
}

// The lease's range while the lease holds; empty when it was taken over. Locks the task.
std::optional<RangeRow> SqlStore::held_range(const Lease& lease) {
  const std::vector<SqlRow> rows = session_->run(
      "SELECT " CONVOY_RANGE_COLUMNS " FROM convoy_ranges WHERE number = $1", {lease.number});
  if (rows.empty()) return std::nullopt;
  RangeRow range = decode_range(rows[0], session_->name());
  if (range.task != lease.task || range.owner != lease.owner) return std::nullopt;
  return range;
}

void SqlStore::update_task(const TaskRow& task) { update_tasks({&task, 1}); }

void SqlStore::update_tasks(std::span<const TaskRow> tasks) {
  std::vector<SqlRow> rows;
  for (const TaskRow& task : tasks)
    rows.push_back({task.number, task.next_unit, task.units_done, static_cast<int64_t>(task.state),
                    crc_of(task)});
  session_->run_many(
      "UPDATE convoy_tasks SET next_unit = $2, units_done = $3, state = $4, crc = $5 "
      "WHERE number = $1",
      rows);
}

int64_t SqlStore::insert_range(const RangeRow& range) {
  const std::vector<SqlRow> rows = session_->run(
      "INSERT INTO convoy_ranges(task, first, count, attempt, worker, expires, crc) "
      "VALUES($1, $2, $3, $4, $5, $6, $7) RETURNING number",
      {range.task, range.first, range.count, range.attempt, range.owner, range.expires_ms,
       crc_of(range)});
  return integer_at(rows.at(0), 0, session_->name());
}

void SqlStore::remove_range(int64_t number) {
  session_->run("DELETE FROM convoy_ranges WHERE number = $1", {number});
}

// Gives the range a new number, so that its former lease no longer holds.
void SqlStore::reopen_range(const RangeRow& range, int64_t attempt) {
  RangeRow open = range;
  open.attempt = attempt;
  open.owner.clear();
  if (open.expires_ms != kParked) open.expires_ms = 0;
  remove_range(range.number);
  insert_range(open);
}

std::vector<Part> SqlStore::progress(int64_t task) {
  const std::vector<SqlRow> rows = read([&] {
    return session_->run(
        "SELECT first, count, payload, crc FROM convoy_parts WHERE task = $1 ORDER BY first",
        {task});
  });
  std::vector<Part> parts;
  int64_t end = 0;
  for (const SqlRow& row : rows) {
    parts.push_back(decode_part(task, row, session_->name()));
    if (parts.back().first < end)
      throw_damaged(session_->name(), fmt::format("finished ranges of task {} overlap", task));
    end = parts.back().first + parts.back().count;
  }
  return parts;
}

std::vector<TaskRecord> SqlStore::unfinished_complete(int64_t group) {
  const std::vector<SqlRow> rows = read([&] {
    return session_->run("SELECT " CONVOY_TASK_COLUMNS
                         " FROM convoy_tasks WHERE group_number = $1 AND state = 0 "
                         "AND units_done = units ORDER BY number",
                         {group});
  });
  std::vector<TaskRecord> records;
  for (const SqlRow& row : rows) records.push_back(record_of(decode_task(row, session_->name())));
  return records;
}

// The plus keeps the indices of groups from being used: pages follow the primary key.
void SqlStore::read_tasks(int64_t group, int64_t after, int64_t at_most, RowPage& page) {
  read([&] {
    const std::array<SqlValue, 3> parameters = {group, after, at_most};
    session_->run_into(
        "SELECT number, group_number, id, parameters, priority, units, next_unit, units_done, "
        "state, text_crc, convoy_tasks.crc, {COALESCE(}kind{, 0)}, {COALESCE(}payload{, '')}, "
        "{COALESCE(}failure{, '')}, {COALESCE(}convoy_results.crc{, 0)} "
        "FROM convoy_tasks LEFT JOIN convoy_results ON task = number "
        "WHERE +group_number = $1 AND number > $2 ORDER BY number LIMIT $3",
        parameters, "iibtiiiiiiiibbi", page);
    return true;
  });
}

// The number of the last task of a full page, 0 for the last page.
int64_t SqlStore::last_of(const RowPage& page, int64_t at_most) const {
  if (static_cast<int64_t>(page.num_rows()) < at_most) return 0;
  return task_number(page.row(page.num_rows() - 1), session_->name());
}

void SqlStore::visit_page(const RowPage& page,
                          const std::function<void(const TaskRecord&)>& visit) const {
  constexpr size_t kTaskColumns = 11;
  const std::string store = session_->name();
  // These objects are declared outside of the loop, so that their memory is reused.
  TaskRow task;
  TaskRecord record;
  ResultRow found;
  for (size_t index = 0; index < page.num_rows(); ++index) {
    const RowPage::Row row = page.row(index);
    decode_task(row, store, task);
    record.number = task.number;
    record.group = task.group;
    write_hex(task.id, record.id);
    record.parameters.swap(task.parameters);
    record.units = task.units;
    record.units_done = task.units_done;
    record.priority = task.priority;
    record.state = task.state;
    const bool has_result = decode_result(record.number, row, kTaskColumns, store, found);
    if (!record.result && has_result) record.result.emplace();
    if (!has_result) record.result.reset();
    if (has_result) std::swap(*record.result, found.result);
    record.finished_ms = has_result ? found.finished_ms : 0;
    if (record.result.has_value() != (record.state != TaskState::Open))
      throw_damaged(store, fmt::format("task {} and its result do not agree", record.number));
    visit(record);
  }
}

// Reads in pages, so that a long listing keeps no transaction open and `visit` may use the store.
void SqlStore::for_each_task(int64_t group, const std::function<void(const TaskRecord&)>& visit) {
  RowPage page;
  int64_t last = 0;
  int64_t at_most = kTasksOfFirstPage;
  do {
    read_tasks(group, last, at_most, page);
    visit_page(page, visit);
    last = last_of(page, at_most);
    const int64_t bytes_per_task = 1 + page.text_bytes() / at_most;
    at_most = std::clamp<int64_t>(kBytesPerPage / bytes_per_task, 1, kTasksPerPage);
  } while (last != 0);
}

void SqlStore::for_each_task_ahead(int64_t group,
                                   const std::function<void(const TaskRecord&)>& visit) {
  RowPage page, next_page;
  read_tasks(group, 0, kTasksPerPage, page);
  while (const int64_t last = last_of(page, kTasksPerPage)) {
    // The future also waits for the fetch when `visit` throws.
    std::future<void> next = std::async(
        std::launch::async, [&, last] { read_tasks(group, last, kTasksPerPage, next_page); });
    visit_page(page, visit);
    next.get();
    std::swap(page, next_page);
  }
  visit_page(page, visit);
}

void SqlStore::verify_all() {
  for (const Group& group : read_groups(Damage::Throw)) {
    for_each_task(group.number, [](const TaskRecord&) {});
    former_results(group.number);
  }
  const std::vector<SqlRow> ranges =
      read([&] { return session_->run("SELECT " CONVOY_RANGE_COLUMNS " FROM convoy_ranges", {}); });
  for (const SqlRow& row : ranges) decode_range(row, session_->name());
  const std::vector<SqlRow> tasks =
      read([&] { return session_->run("SELECT DISTINCT task FROM convoy_parts", {}); });
  for (const SqlRow& row : tasks) progress(integer_at(row, 0, session_->name()));
  const std::vector<SqlRow> noted = read([&] {
    if (!has_notes_table()) return std::vector<SqlRow>();
    return session_->run("SELECT number, task, key, payload, crc FROM convoy_notes", {});
  });
  for (const SqlRow& row : noted) decode_note(row, session_->name());
}

}  // namespace convoy::jobs
