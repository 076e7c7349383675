// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sql/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/store_tables.h"

namespace convoy::jobs {
namespace {

constexpr int64_t kRecoveredPerPage = 2'000;

// A row is sound when its decoder accepts it.
template <class Decode>
bool decodes(Decode&& decode) {
  try {
    decode();
    return true;
  } catch (const DataError&) {
    return false;
  }
}

SqlRow without_first(const SqlRow& row) { return {row.begin() + 1, row.end()}; }

bool is_sound_task(const SqlRow& row) {
  return decodes([&] { decode_task(row, ""); });
}

// A damaged name does not matter, because it can be repaired. All columns must have the right type.
bool is_sound_group(const SqlRow& row) {
  return row.size() == 5 && std::holds_alternative<int64_t>(row[0]) &&
         std::holds_alternative<int64_t>(row[4]) &&
         std::all_of(row.begin() + 1, row.begin() + 4, [](const SqlValue& value) {
           return std::holds_alternative<std::string>(value);
         });
}

bool is_sound_result(const SqlRow& row) {
  return decodes([&] { decode_result(integer_at(row, 0, ""), without_first(row), ""); });
}

bool is_sound_part(const SqlRow& row) {
  return decodes([&] {
    const Part part = decode_part(integer_at(row, 0, ""), without_first(row), "");
    if (part.first < 0 || part.count <= 0) throw_damaged("", "a range without units");
  });
}

bool is_sound_range(const SqlRow& row) {
  return decodes([&] { decode_range(row, ""); });
}

bool is_sound_former(const SqlRow& row) {
  return decodes([&] { decode_former(without_first(row), ""); });
}

bool is_sound_note(const SqlRow& row) {
  return decodes([&] { decode_note(row, ""); });
}

constexpr std::array<RecoveredTable, 7> kTables = {{
    {"convoy_groups", "number, name, workload, version, crc", 5, 1, is_sound_group},
    {"convoy_tasks", CONVOY_TASK_COLUMNS, 11, 1, is_sound_task},
    {"convoy_results", "task, kind, payload, failure, crc", 5, 1, is_sound_result},
    {"convoy_parts", "task, first, count, payload, crc", 5, 2, is_sound_part},
    {"convoy_ranges", CONVOY_RANGE_COLUMNS, 8, 1, is_sound_range},
    {"convoy_former", "number, task, kind, payload, failure, replaced, crc", 7, 1, is_sound_former},
    {"convoy_notes", "number, task, key, payload, crc", 5, 1, is_sound_note},
}};

// Units [first, first + count) that are finished, leased or returned.
struct Span {
  int64_t first = 0;
  int64_t count = 0;
};

class Settler {
 public:
  Settler(SqlSession& session, Recovery& recovery) : session_(session), recovery_(recovery) {}

  void run() {
    settle_groups();
    remove_strays();
    for (int64_t last = 0;;) {
      const std::vector<SqlRow> rows =
          session_.run("SELECT " CONVOY_TASK_COLUMNS
                       " FROM convoy_tasks WHERE number > $1 ORDER BY number LIMIT $2 {FOR UPDATE}",
                       {last, kRecoveredPerPage});
      for (const SqlRow& row : rows) settle_task(decode_task(row, session_.name()));
      recovery_.tasks += static_cast<int64_t>(rows.size());
      if (static_cast<int64_t>(rows.size()) < kRecoveredPerPage) break;
      last = integer_at(rows.back(), 0, session_.name());
    }
    recovery_.results = count_of("convoy_results");
    recovery_.groups = count_of("convoy_groups");
  }

 private:
  int64_t count_of(const std::string& table) {
    return integer_at(session_.run("SELECT count(*) FROM " + table, {}).at(0), 0, session_.name());
  }

  // A task's id is a hash over its workload and version: it identifies them when the group's own
  // row is damaged.
  void settle_groups() {
    std::vector<Group> sound, damaged;
    for (const SqlRow& row : session_.run(
             "SELECT number, name, workload, version, crc FROM convoy_groups ORDER BY number",
             {})) {
      Group group;
      const bool good = decodes([&] { decode_group(row, "", group); });
      (good ? sound : damaged).push_back(group);
    }
    for (Group& group : damaged) {
      const std::optional<Group> found = identified(group, sound);
      ++recovery_.dropped_rows;
      if (!found) {
        session_.run("DELETE FROM convoy_groups WHERE number = $1", {group.number});
        continue;
      }
      ++recovery_.renamed_groups;
      session_.run(
          "UPDATE convoy_groups SET name = $2, workload = $3, version = $4, crc = $5 "
          "WHERE number = $1",
          {group.number, found->name, found->workload, found->version, crc_of(*found)});
    }
  }

  std::optional<Group> identified(const Group& damaged, const std::vector<Group>& sound) {
    const std::vector<SqlRow> rows =
        session_.run("SELECT " CONVOY_TASK_COLUMNS
                     " FROM convoy_tasks WHERE group_number = $1 ORDER BY number LIMIT 1",
                     {damaged.number});
    if (rows.empty()) return std::nullopt;
    const TaskRow task = decode_task(rows[0], session_.name());
    std::vector<Group> candidates = sound;
    candidates.push_back(damaged);
    for (Group& one : candidates) {
      const auto id = task_id_bytes(one.workload, one.version, task.parameters, task.units);
      if (task.id != std::string(reinterpret_cast<const char*>(id.data()), id.size())) continue;
      const size_t slash = damaged.name.rfind('/');
      one.number = damaged.number;
      one.name = fmt::format("recovered-{}{}", damaged.number,
                             slash == std::string::npos ? "/run" : damaged.name.substr(slash));
      return one;
    }
    return std::nullopt;
  }

  void remove_strays() {
    session_.run(
        "DELETE FROM convoy_tasks WHERE group_number NOT IN (SELECT number FROM convoy_groups)",
        {});
    for (const char* const table : {"convoy_results", "convoy_parts", "convoy_ranges"})
      session_.run(
          fmt::format("DELETE FROM {} WHERE task NOT IN (SELECT number FROM convoy_tasks)", table),
          {});
    for (const char* const table : {"convoy_former", "convoy_notes"})
      if (session_.has_table(table))
        session_.run(
            fmt::format("DELETE FROM {} WHERE task NOT IN (SELECT number FROM convoy_tasks)",
                        table),
            {});
    // Lists recorded as added completely may lack tasks now.
    session_.run("DELETE FROM convoy_meta WHERE key LIKE 'group_list_%'", {});
  }

  void settle_task(TaskRow task) {
    const std::vector<SqlRow> results =
        session_.run("SELECT kind FROM convoy_results WHERE task = $1", {task.number});
    const auto kind = results.empty()
                          ? ResultKind{}
                          : static_cast<ResultKind>(integer_at(results[0], 0, session_.name()));
    const TaskState state = results.empty()              ? TaskState::Open
                            : kind == ResultKind::Failed ? TaskState::Failed
                                                         : TaskState::Done;
    const bool lost_result = state == TaskState::Open && task.state != TaskState::Open;
    if (state == TaskState::Done && task.state == TaskState::Done) return;
    const std::vector<Span> parts = spans_of("convoy_parts", task);
    if (!lost_result && state == task.state && is_whole(task, parts)) return;
    ++recovery_.reopened;
    task.state = state;
    if (state == TaskState::Done)
      remove_parts(task);
    else
      rebuild_ranges(task, parts);
    session_.run(
        "UPDATE convoy_tasks SET next_unit = $2, units_done = $3, state = $4, crc = $5 "
        "WHERE number = $1",
        {task.number, task.next_unit, task.units_done, static_cast<int64_t>(task.state),
         crc_of(task)});
  }

  std::vector<Span> spans_of(const std::string& table, const TaskRow& task) {
    std::vector<Span> spans;
    for (const SqlRow& row :
         session_.run("SELECT first, count FROM " + table + " WHERE task = $1 ORDER BY first",
                      {task.number}))
      spans.push_back({integer_at(row, 0, session_.name()), integer_at(row, 1, session_.name())});
    return spans;
  }

  // Ranges, parts and untouched units must cover all units without overlap.
  bool is_whole(const TaskRow& task, const std::vector<Span>& parts) {
    std::vector<Span> all = spans_of("convoy_ranges", task);
    all.insert(all.end(), parts.begin(), parts.end());
    std::sort(all.begin(), all.end(),
              [](const Span& left, const Span& right) { return left.first < right.first; });
    int64_t end = 0, done = 0;
    for (const Span& span : all) {
      if (span.first != end) return false;
      end += span.count;
    }
    for (const Span& part : parts) done += part.count;
    return end == task.next_unit && done == task.units_done;
  }

  void remove_parts(TaskRow& task) {
    session_.run("DELETE FROM convoy_ranges WHERE task = $1", {task.number});
    session_.run("DELETE FROM convoy_parts WHERE task = $1", {task.number});
  }

  // Reopens units below the last part that no part covers. The first of several
  // overlapping parts counts.
  void rebuild_ranges(TaskRow& task, const std::vector<Span>& parts) {
    session_.run("DELETE FROM convoy_ranges WHERE task = $1", {task.number});
    task.next_unit = task.units_done = 0;
    for (const Span& part : parts) {
      if (part.first < task.next_unit || part.first + part.count > task.units) {
        session_.run("DELETE FROM convoy_parts WHERE task = $1 AND first = $2",
                     {task.number, part.first});
        continue;
      }
      if (part.first > task.next_unit) insert_open(task, part.first - task.next_unit);
      task.next_unit = part.first + part.count;
      task.units_done += part.count;
    }
  }

  void insert_open(const TaskRow& task, int64_t count) {
    const RangeRow range{.task = task.number,
                         .first = task.next_unit,
                         .count = count,
                         .expires_ms = task.state == TaskState::Failed ? kParked : 0};
    session_.run(
        "INSERT INTO convoy_ranges(task, first, count, attempt, worker, expires, crc) "
        "VALUES($1, $2, $3, $4, $5, $6, $7)",
        {range.task, range.first, range.count, range.attempt, range.owner, range.expires_ms,
         crc_of(range)});
  }

  SqlSession& session_;
  Recovery& recovery_;
};

}  // namespace

std::span<const RecoveredTable> recovered_tables() { return kTables; }

std::string insert_statement(const RecoveredTable& table) {
  std::string places;
  for (int place = 1; place <= table.num_columns; ++place)
    places += fmt::format("{}${}", place == 1 ? "" : ", ", place);
  return fmt::format("INSERT INTO {}({}) VALUES({})", table.name, table.columns, places);
}

void settle(SqlSession& session, Recovery& recovery) { Settler(session, recovery).run(); }

}  // namespace convoy::jobs
