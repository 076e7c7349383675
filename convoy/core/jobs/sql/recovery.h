// SPDX-License-Identifier: Apache-2.0
//
// The rows of a store one by one, for its recovery: which rows are sound, and the state of tasks
// after damaged rows are removed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "convoy/core/jobs/recover_store.h"
#include "convoy/core/jobs/sql/session.h"

namespace convoy::jobs {

// A table whose rows are independent: each has a checksum over all its columns.
struct RecoveredTable {
  std::string_view name;
  std::string_view columns;
  int num_columns;
  int num_key_columns;  // the first of `columns`
  bool (*is_sound)(const SqlRow& row);
};

// The tables, in the order in which they can be filled, without the table of names and values.
std::span<const RecoveredTable> recovered_tables();

// "INSERT INTO name(columns) VALUES($1, ...)".
std::string insert_statement(const RecoveredTable& table);

// Call it within a write transaction, after the damaged rows are removed. Renames groups with a
// damaged name, removes rows that belong to no task, and reopens tasks as far as their units are
// not finished.
void settle(SqlSession& session, Recovery& recovery);

}  // namespace convoy::jobs
