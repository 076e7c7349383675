// SPDX-License-Identifier: Apache-2.0
//
// Claims, renews and releases leases.
#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/hash.h"
#include "convoy/core/jobs/sql/transaction.h"

namespace convoy::jobs {
namespace {

Lease lease_of(const TaskRow& task, const RangeRow& range) {
  return {.number = range.number,
          .task = task.number,
          .task_id = hex_of(task.id),
          .parameters = task.parameters,
          .task_units = task.units,
          .first = range.first,
          .count = range.count,
          .owner = range.owner,
          .expires_ms = range.expires_ms,
          .attempt = static_cast<int>(range.attempt)};
}

}  // namespace

// The state of one claim(). Range i belongs to lease i; numbers are assigned last, all at once.
struct SqlStore::Claim {
  const ClaimRequest& request;
  int64_t now_ms = 0;
  std::vector<Lease> leases;
  std::vector<RangeRow> ranges;

  int64_t wanted() const { return request.max_ranges - static_cast<int64_t>(leases.size()); }
};

std::vector<Lease> SqlStore::claim(const ClaimRequest& request) {
  CONVOY_INVARIANT(!request.owner.empty() && request.units_per_range > 0,
                   "a claim needs a worker and a range length");
  return write(0, [&] {
    Claim claim{.request = request, .now_ms = now_ms(), .leases = {}, .ranges = {}};
    claim_returned(claim);
    claim_untouched(claim, false);
    // Other processes may have locked all tasks with free units; try those tasks again and wait for
    // their locks.
    if (claim.leases.empty()) claim_untouched(claim, true);
    give_numbers(claim);
    return std::move(claim.leases);
  });
}

// Claims expired leases and returned ranges. CROSS JOIN keeps SQLite from walking all open tasks to
// find the few ranges.
void SqlStore::claim_returned(Claim& claim) {
  const std::vector<SqlRow> rows = session_->run(
      "SELECT r.number, r.task, r.first, r.count, r.attempt, r.worker, r.expires, r.crc, "
      "t.number, t.group_number, t.id, t.parameters, t.priority, t.units, t.next_unit, "
      "t.units_done, t.state, t.text_crc, t.crc "
      "FROM convoy_ranges r CROSS JOIN convoy_tasks t "
      "WHERE t.number = r.task AND r.expires <= $1 AND t.group_number = $2 AND t.state = 0 "
      "ORDER BY t.priority DESC, r.task, r.first LIMIT $3 {FOR UPDATE SKIP LOCKED}",
      {claim.now_ms, claim.request.group, claim.request.max_ranges});
  constexpr size_t kRangeColumns = 8;
  std::vector<int64_t> failed;
  for (const SqlRow& row : rows) {
    if (claim.wanted() <= 0) return;
    RangeRow range = decode_range(row, session_->name());
    TaskRow task = decode_task(SqlRow(row.begin() + kRangeColumns, row.end()), session_->name());
    if (std::find(failed.begin(), failed.end(), task.number) != failed.end()) continue;
    if (claim.request.max_attempts > 0 && range.attempt >= claim.request.max_attempts) {
      fail_task(task,
                {.kind = "lost",
                 .message = fmt::format("units {} to {} were lost with their worker {} times",
                                        range.first, range.first + range.count - 1, range.attempt),
                 .attempt = static_cast<int>(range.attempt)});
      failed.push_back(task.number);
      continue;
    }
    remove_range(range.number);
    const int64_t end = range.first + range.count;
    RangeRow piece = range;
    ++piece.attempt;
    while (piece.first < end && claim.wanted() > 0) {
      piece.count = std::min(claim.request.units_per_range, end - piece.first);
      hand_out(claim, task, piece);
      piece.first += piece.count;
    }
    if (piece.first == end) continue;
    piece.count = end - piece.first;
    piece.attempt = range.attempt;
    piece.owner.clear();
    piece.expires_ms = 0;
    insert_range(piece);
  }
}

void SqlStore::claim_untouched(Claim& claim, bool wait) {
  if (claim.wanted() <= 0) return;
  constexpr std::string_view kSkip =
      "SELECT " CONVOY_TASK_COLUMNS
      " FROM convoy_tasks WHERE group_number = $1 AND state = 0 AND next_unit < units "
      "ORDER BY priority DESC, number LIMIT $2 {FOR UPDATE SKIP LOCKED}";
  constexpr std::string_view kWait =
      "SELECT " CONVOY_TASK_COLUMNS
      " FROM convoy_tasks WHERE group_number = $1 AND state = 0 AND next_unit < units "
      "ORDER BY priority DESC, number LIMIT $2 {FOR UPDATE}";
  const std::vector<SqlRow> rows =
      session_->run(wait ? kWait : kSkip, {claim.request.group, claim.wanted()});
  std::vector<TaskRow> changed;
  for (const SqlRow& row : rows) {
    if (claim.wanted() <= 0) break;
    TaskRow task = decode_task(row, session_->name());
    while (task.next_unit < task.units && claim.wanted() > 0) {
      const int64_t count = std::min(claim.request.units_per_range, task.units - task.next_unit);
      hand_out(claim, task,
               {.task = task.number, .first = task.next_unit, .count = count, .attempt = 1});
      task.next_unit += count;
    }
    changed.push_back(std::move(task));
  }
  update_tasks(changed);
}

void SqlStore::hand_out(Claim& claim, const TaskRow& task, RangeRow range) {
  range.owner = claim.request.owner;
  range.expires_ms = claim.now_ms + claim.request.lease.count();
  claim.leases.push_back(lease_of(task, range));
  claim.ranges.push_back(std::move(range));
}

void SqlStore::give_numbers(Claim& claim) {
  std::vector<SqlRow> rows;
  for (const RangeRow& range : claim.ranges)
    rows.push_back({range.task, range.first, range.count, range.attempt, range.owner,
                    range.expires_ms, crc_of(range)});
  const std::vector<SqlRow> numbers = session_->run_many(
      "INSERT INTO convoy_ranges(task, first, count, attempt, worker, expires, crc) "
      "VALUES($1, $2, $3, $4, $5, $6, $7) RETURNING number",
      rows);
  for (size_t index = 0; index < numbers.size(); ++index)
    claim.leases[index].number = integer_at(numbers[index], 0, session_->name());
}

std::vector<bool> SqlStore::renew(std::span<Lease> leases, std::chrono::milliseconds lease) {
  int64_t expires_ms = 0;
  std::vector<bool> held = write(0, [&] {
    std::vector<bool> renewed;
    expires_ms = now_ms() + lease.count();
    for (const Lease& old : leases) {
      RangeRow range{.task = old.task,
                     .first = old.first,
                     .count = old.count,
                     .attempt = old.attempt,
                     .owner = old.owner,
                     .expires_ms = expires_ms};
      renewed.push_back(!session_
                             ->run("UPDATE convoy_ranges SET expires = $2, crc = $3 "
                                   "WHERE number = $1 AND expires < $4 RETURNING number",
                                   {old.number, expires_ms, crc_of(range), kParked})
                             .empty());
    }
    return renewed;
  });
  for (size_t index = 0; index < held.size(); ++index)
    if (held[index]) leases[index].expires_ms = expires_ms;
  return held;
}

int64_t SqlStore::release(const std::string& owner) {
  return write(0, [&] {
    const std::vector<SqlRow> rows = session_->run(
        "SELECT r.number, r.task, r.first, r.count, r.attempt, r.worker, r.expires, r.crc "
        "FROM convoy_ranges r CROSS JOIN convoy_tasks t WHERE t.number = r.task AND r.worker = $1 "
        "ORDER BY r.task, r.first {FOR UPDATE}",
        {owner});
    for (const SqlRow& row : rows) {
      const RangeRow range = decode_range(row, session_->name());
      reopen_range(range, range.attempt - 1);
    }
    return static_cast<int64_t>(rows.size());
  });
}

std::vector<Lease> SqlStore::leases(int64_t group) {
  const std::vector<SqlRow> rows = read([&] {
    return session_->run(
        "SELECT r.number, r.task, r.first, r.count, r.attempt, r.worker, r.expires, r.crc, "
        "t.number, t.group_number, t.id, t.parameters, t.priority, t.units, t.next_unit, "
        "t.units_done, t.state, t.text_crc, t.crc "
        "FROM convoy_ranges r CROSS JOIN convoy_tasks t "
        "WHERE t.number = r.task AND t.group_number = $1 AND t.state = 0 ORDER BY r.task, r.first",
        {group});
  });
  constexpr size_t kRangeColumns = 8;
  std::vector<Lease> leases;
  for (const SqlRow& row : rows) {
    const RangeRow range = decode_range(row, session_->name());
    if (range.owner.empty()) continue;
    const TaskRow task =
        decode_task(SqlRow(row.begin() + kRangeColumns, row.end()), session_->name());
    leases.push_back(lease_of(task, range));
  }
  return leases;
}

}  // namespace convoy::jobs
