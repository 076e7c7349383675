// SPDX-License-Identifier: Apache-2.0
//
// Rows of the store's tables as structs. Each row carries a CRC32C over its other columns, made on
// every write and verified on every read, so that a flipped byte is found and never counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convoy/core/jobs/sql/row_page.h"
#include "convoy/core/jobs/sql/session.h"
#include "convoy/core/jobs/task.h"

namespace convoy::jobs {

// Column lists in the order in which the decoders read. Macros, because statements are concatenated
// at compile time.
#define CONVOY_TASK_COLUMNS                                                               \
  "number, group_number, id, parameters, priority, units, next_unit, units_done, state, " \
  "text_crc, crc"
#define CONVOY_RANGE_COLUMNS "number, task, first, count, attempt, worker, expires, crc"

// Expiry of a range whose task has failed: it cannot be claimed until the task is reopened.
constexpr int64_t kParked = INT64_MAX;

struct TaskRow {
  int64_t number = 0;
  int64_t group = 0;
  std::string id = {};  // 32 raw bytes
  std::string parameters = {};
  int64_t priority = 0;
  int64_t units = 1;
  int64_t next_unit = 0;  // units from here on were never handed out
  int64_t units_done = 0;
  TaskState state = TaskState::Open;
};

// A leased range, or one that is open again (owner empty, already expired).
struct RangeRow {
  int64_t number = 0;
  int64_t task = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t attempt = 0;  // number of attempts begun
  std::string owner = {};
  int64_t expires_ms = 0;
};

int64_t crc_of(const Group& group);
int64_t text_crc_of(std::string_view id, std::string_view parameters);
int64_t crc_of(const TaskRow& task);
// Excludes the number, which the database assigns on insertion.
int64_t crc_of(const RangeRow& range);
int64_t crc_of(int64_t task, const Part& part);

// Each throws DataError naming `store` when the row is damaged. `row` may hold more columns after
// the ones that are read. Members of `group` read before the throw keep their values.
void decode_group(const SqlRow& row, const std::string& store, Group& group);
// Column: the text of encode_times.
void decode_times(const SqlRow& row, Group& group, const std::string& store);
TaskRow decode_task(const SqlRow& row, const std::string& store);
// Reuses the memory of `task`'s texts.
void decode_task(const RowPage::Row& row, const std::string& store, TaskRow& task);
RangeRow decode_range(const SqlRow& row, const std::string& store);
// Columns: first, count, payload, crc.
Part decode_part(int64_t task, const SqlRow& row, const std::string& store);
// A result and the time at which it was finished, in milliseconds; 0 = unknown.
struct ResultRow {
  Result result;
  int64_t finished_ms = 0;
};
// Columns from `at` on: kind, payload, failure, crc. False where kind is 0: the task has no result.
bool decode_result(int64_t task, const RowPage::Row& row, size_t at, const std::string& store,
                   ResultRow& found);
ResultRow decode_result(int64_t task, const SqlRow& row, const std::string& store);
// Columns: task, kind, payload, failure, replaced, crc.
FormerResult decode_former(const SqlRow& row, const std::string& store);

// Columns: number, task, key, payload, crc.
Note decode_note(const SqlRow& row, const std::string& store);
int64_t crc_of(const Note& note);

// "created_ms last_run_ms checksum" for the group.
std::string encode_times(const Group& group);
// Columns: task, kind, payload, failure, crc. For a value, the column `failure` holds the time when
// it was finished.
SqlRow encode_result(int64_t task, const ResultRow& row);
SqlRow encode_former(const FormerResult& former);  // as decode_former reads it

// The task number in a row of task columns.
int64_t task_number(const RowPage::Row& row, const std::string& store);
int64_t integer_at(const SqlRow& row, size_t column, const std::string& store);
[[noreturn]] void throw_damaged(const std::string& store, const std::string& what);

}  // namespace convoy::jobs
