// SPDX-License-Identifier: Apache-2.0
//
// The rows of a store one by one, as its recovery sees them: which are sound, and what tasks are
// once others are gone.
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

// A table whose rows stand for themselves: each has a checksum over all of it.
struct RecoveredTable {
  std::string_view name;
  std::string_view columns;
  int num_columns;
  int num_key_columns;  // the first of `columns`
  bool (*is_sound)(const SqlRow& row);
};

// In the order in which they can be filled. The table of names and values is not among them.
std::span<const RecoveredTable> recovered_tables();

// "INSERT INTO name(columns) VALUES($1, ...)".
std::string insert_statement(const RecoveredTable& table);

// Within a write transaction, once the rows that are not sound are gone: groups with a damaged name
// get another, what belongs to no task is removed, and tasks are open again as far as their units
// are not finished.
void settle(SqlSession& session, Recovery& recovery);

}  // namespace convoy::jobs
