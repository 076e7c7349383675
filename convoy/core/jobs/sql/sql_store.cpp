// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sql/sql_store.h"

#include <fmt/format.h>

#include <thread>

#include "convoy/core/base/text_as.h"
#include "convoy/core/jobs/sql/transaction.h"

namespace convoy::jobs {
namespace {

constexpr int64_t kMaxResultsAtRisk = 10;
constexpr std::chrono::seconds kMaxTimeAtRisk{2};
constexpr std::chrono::milliseconds kRetryPause{50};
constexpr size_t kTasksPerTransaction = 20'000;
constexpr int64_t kIdsPerPage = 4'000;

std::string list_key(int64_t group) { return fmt::format("group_list_{}", group); }

// The beginning of a key; the name of a process follows it.
constexpr std::string_view kClockKey = "clock:";

std::string times_key(int64_t group) { return fmt::format("group_times_{}", group); }

Bytes bytes_of_id(const std::array<uint8_t, 32>& id) {
  return {std::string(reinterpret_cast<const char*>(id.data()), id.size())};
}

}  // namespace

SqlStore::SqlStore(std::unique_ptr<SqlSession> session, std::chrono::milliseconds busy_limit,
                   std::function<bool(std::chrono::milliseconds)> keep_waiting)
    : session_(std::move(session)),
      busy_limit_(busy_limit),
      keep_waiting_(std::move(keep_waiting)) {}

bool SqlStore::durability_is_due(int64_t num_results) const {
  const int64_t at_risk = results_at_risk_ + num_results;
  if (at_risk == 0) return false;
  return at_risk >= kMaxResultsAtRisk ||
         (results_at_risk_ > 0 &&
          std::chrono::steady_clock::now() - oldest_at_risk_ >= kMaxTimeAtRisk);
}

void SqlStore::note_committed(int64_t num_results, bool durable) {
  if (durable || !session_->defers_durability()) {
    results_at_risk_ = 0;
    return;
  }
  if (results_at_risk_ == 0) oldest_at_risk_ = std::chrono::steady_clock::now();
  results_at_risk_ += num_results;
}

int64_t SqlStore::now_ms() {
  if (!now_ms_) now_ms_ = session_->now_ms();
  return *now_ms_;
}

void SqlStore::wait_or_give_up(const RetryTransaction& error,
                               std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0 || (keep_waiting_ && !keep_waiting_(left)))
    throw IoError(error.what(), error.location());
  std::this_thread::sleep_for(kRetryPause);
}

void SqlStore::sync() {
  if (results_at_risk_ == 0) return;
  // Writing any page flushes the log to disk, with all earlier commits.
  attempt(Begin::DurableWrite, [&] {
    session_->run("UPDATE convoy_meta SET value = value WHERE key = 'schema_version'", {});
    return true;
  });
  note_committed(0, true);
}

GroupRegistration SqlStore::register_group(const std::string& name, const std::string& workload,
                                           const std::string& version) {
  const Group wanted{.number = 0, .name = name, .workload = workload, .version = version};
  const std::vector<Group> same_name = write(0, [&] {
    const bool is_new =
        !session_
             ->run(
                 "INSERT INTO convoy_groups(name, workload, version, crc) VALUES($1, $2, $3, $4) "
                 "ON CONFLICT(name, workload, version) DO NOTHING RETURNING number",
                 {name, workload, version, crc_of(wanted)})
             .empty();
    const std::vector<SqlRow> rows = session_->run(
        "SELECT number, name, workload, version, crc FROM convoy_groups WHERE name = $1 "
        "ORDER BY number",
        {name});
    std::vector<Group> groups;
    for (const SqlRow& row : rows) {
      Group& group = groups.emplace_back();
      decode_group(row, session_->name(), group);
      if (group.workload == workload && group.version == version) note_run(group.number, is_new);
      read_times(group);
    }
    return groups;
  });
  GroupRegistration registration;
  for (const Group& found : same_name) {
    if (found.workload == workload && found.version == version)
      registration.group = found;
    else
      registration.others.push_back(found);
  }
  if (registration.group.number == 0)
    throw_damaged(session_->name(), fmt::format("group '{}' cannot be found", name));
  return registration;
}

std::vector<Group> SqlStore::groups() { return read_groups(Damage::Note); }

std::vector<Group> SqlStore::read_groups(Damage damage) {
  return read([&] {
    const std::vector<SqlRow> rows = session_->run(
        "SELECT number, name, workload, version, crc FROM convoy_groups ORDER BY number", {});
    std::vector<Group> groups;
    for (const SqlRow& row : rows) {
      Group& group = groups.emplace_back();
      try {
        decode_group(row, session_->name(), group);
        read_times(group);
      } catch (const DataError& error) {
        if (damage == Damage::Throw) throw;
        group.problem = error.what();
      }
    }
    return groups;
  });
}

// Writes a row of the table of names and values. Every schema has this table, so older stores need
// no migration, and older versions of Convoy can still read the store.
std::vector<SqlRow> SqlStore::note(const std::string& key, const std::string& value) {
  return session_->run(
      "INSERT INTO convoy_meta(key, value) VALUES($1, $2) "
      "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
      {key, value});
}

std::vector<SqlRow> SqlStore::noted(const std::string& key) {
  return session_->run("SELECT value FROM convoy_meta WHERE key = $1", {key});
}

std::map<std::string, int64_t> SqlStore::tell_clock(const std::string& name) {
  const std::vector<SqlRow> rows = write(0, [&] {
    note(std::string(kClockKey) + name, std::to_string(now_ms()));
    return session_->run("SELECT key, value FROM convoy_meta WHERE substr(key, 1, 6) = $1",
                         {std::string(kClockKey)});
  });
  std::map<std::string, int64_t> clocks;
  for (const SqlRow& row : rows) {
    const auto time = text_as<int64_t>(std::get<std::string>(row.at(1)));
    if (time) clocks[std::get<std::string>(row.at(0)).substr(kClockKey.size())] = *time;
  }
  return clocks;
}

void SqlStore::forget_clock(const std::string& name) {
  write(0, [&] {
    return session_->run("DELETE FROM convoy_meta WHERE key = $1", {std::string(kClockKey) + name});
  });
}

void SqlStore::note_run(int64_t group, bool is_new) {
  Group known;
  known.number = group;
  read_times(known);
  known.last_run_ms = now_ms();
  if (is_new) known.created_ms = known.last_run_ms;
  note(times_key(group), encode_times(known));
}

void SqlStore::read_times(Group& group) {
  const std::vector<SqlRow> rows = noted(times_key(group.number));
  if (!rows.empty()) decode_times(rows[0], group, session_->name());
}

Group SqlStore::group(int64_t number) {
  const auto known = groups_.find(number);
  if (known != groups_.end()) return known->second;
  for (const Group& found : groups())
    if (found.problem.empty()) groups_[found.number] = found;
  CONVOY_INVARIANT(groups_.contains(number), "group {} was never registered", number);
  return groups_[number];
}

// The ids from `wanted` that the group has; may include other ids of the group.
SqlStore::IdSet SqlStore::known_ids(int64_t group, const std::vector<TaskId>& wanted) {
  // One scan of the index beats a look-up per id unless the group is far larger than the list.
  constexpr int64_t kLookUpCost = 20;
  const Counts total = counts(group);
  const int64_t stored = total.all();
  const bool scan = stored < kLookUpCost * static_cast<int64_t>(wanted.size());
  IdSet known;
  known.reserve(scan ? static_cast<size_t>(stored) : 0);
  const auto take = [&](const std::vector<SqlRow>& rows) {
    for (const SqlRow& row : rows) {
      const Bytes* const bytes = std::get_if<Bytes>(&row.at(0));
      TaskId id{};
      if (bytes == nullptr || bytes->data.size() != id.size())
        throw_damaged(session_->name(), "the id of a task is no id");
      std::memcpy(id.data(), bytes->data.data(), id.size());
      known.insert(id);
    }
  };
  if (!scan) {
    std::vector<SqlRow> parameters;
    for (const TaskId& id : wanted) parameters.push_back({group, bytes_of_id(id)});
    take(read([&] {
      return session_->run_many("SELECT id FROM convoy_tasks WHERE group_number = $1 AND id = $2",
                                parameters);
    }));
    return known;
  }
  for (Bytes last;;) {
    const std::vector<SqlRow> rows = read([&] {
      return session_->run(
          "SELECT id FROM convoy_tasks WHERE group_number = $1 AND id > $2 ORDER BY id LIMIT $3",
          {group, last, kIdsPerPage});
    });
    take(rows);
    if (rows.empty()) return known;
    last = std::get<Bytes>(rows.back().at(0));
  }
}

int64_t JobStore::add(int64_t group, std::span<const NewTask> tasks) {
  return add(group,
             TaskList{.count = static_cast<int64_t>(tasks.size()),
                      .task = [&](int64_t index) { return tasks[static_cast<size_t>(index)]; }});
}

int64_t SqlStore::add(int64_t group_number, const TaskList& tasks) {
  if (tasks.count == 0 || has_list(group_number, tasks)) return 0;
  const int64_t added = add_missing(group_number, tasks);
  if (!tasks.digest.empty()) write(0, [&] { return note(list_key(group_number), tasks.digest); });
  return added;
}

// True when this list was added to the group last and its tasks are still there. The number of
// tasks is checked to detect tasks that were deleted by hand.
bool SqlStore::has_list(int64_t group, const TaskList& tasks) {
  if (tasks.digest.empty()) return false;
  const std::vector<SqlRow> rows = read([&] { return noted(list_key(group)); });
  if (rows.empty() || rows[0].at(0) != SqlValue(tasks.digest)) return false;
  return counts(group).all() >= tasks.count;
}

int64_t SqlStore::add_missing(int64_t group_number, const TaskList& tasks) {
  const Group owner = group(group_number);
  std::vector<TaskId> ids;
  ids.reserve(static_cast<size_t>(tasks.count));
  for (int64_t index = 0; index < tasks.count; ++index) {
    const NewTask task = tasks.task(index);
    CONVOY_INVARIANT(task.units > 0, "a task needs at least one unit, found {}", task.units);
    ids.push_back(task_id_bytes(owner.workload, owner.version, task.parameters, task.units));
  }
  const IdSet known = known_ids(group_number, ids);
  std::vector<SqlRow> rows;
  int64_t num_added = 0;
  const auto insert = [&] {
    const std::vector<SqlRow> added = write(0, [&] {
      return session_->run_many(
          "INSERT INTO convoy_tasks(group_number, id, parameters, priority, units, "
          "next_unit, units_done, state, text_crc, crc) "
          "VALUES($1, $2, $3, $4, $5, 0, 0, 0, $6, $7) "
          "ON CONFLICT(group_number, id) DO NOTHING RETURNING number",
          rows);
    });
    num_added += static_cast<int64_t>(added.size());
    rows.clear();
  };
  for (int64_t index = 0; index < tasks.count; ++index) {
    if (known.contains(ids[static_cast<size_t>(index)])) continue;
    NewTask task = tasks.task(index);
    Bytes id = bytes_of_id(ids[static_cast<size_t>(index)]);
    const TaskRow row{.group = group_number, .priority = task.priority, .units = task.units};
    const int64_t text_crc = text_crc_of(id.data, task.parameters);
    rows.push_back({group_number, std::move(id), std::move(task.parameters), task.priority,
                    task.units, text_crc, crc_of(row)});
    if (rows.size() == kTasksPerTransaction) insert();
  }
  if (!rows.empty()) insert();
  return num_added;
}

int64_t SqlStore::count_open(int64_t group, int64_t at_most) {
  const std::vector<SqlRow> rows = read([&] {
    return session_->run(
        "SELECT count(*) FROM (SELECT 1 FROM convoy_tasks WHERE group_number = $1 AND state = 0 "
        "LIMIT $2) AS open_tasks",
        {group, at_most});
  });
  return integer_at(rows.at(0), 0, session_->name());
}

Counts SqlStore::counts(int64_t group) {
  const std::vector<SqlRow> rows = read([&] {
    return session_->run(
        "SELECT state, count(*) FROM convoy_tasks WHERE group_number = $1 GROUP BY state", {group});
  });
  Counts counts;
  for (const SqlRow& row : rows) {
    const int64_t count = integer_at(row, 1, session_->name());
    switch (static_cast<TaskState>(integer_at(row, 0, session_->name()))) {
      case TaskState::Open:
        counts.open = count;
        break;
      case TaskState::Done:
        counts.done = count;
        break;
      case TaskState::Failed:
        counts.failed = count;
        break;
      default:
        throw_damaged(session_->name(), "a task has an unknown state");
    }
  }
  return counts;
}

}  // namespace convoy::jobs
