// SPDX-License-Identifier: Apache-2.0
//
// The tables of the store and their migration from older versions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/session.h"

namespace convoy::jobs {

// A dialect's type names for @KEY@, @INT@ and @BLOB@ in a script.
struct ColumnTypes {
  std::string_view key;
  std::string_view integer;
  std::string_view bytes;
};
std::string with_types(std::string script, const ColumnTypes& types);

// Entry n turns version n into n + 1; an empty database has version 0. Entries are never changed,
// only added.
std::span<const char* const> schema_steps();

// Creates the table of former results in a store that lacks it. The table came after version 1 and
// is created at its first use, so that older stores stay readable. Call it within a write
// transaction.
void make_former_table(SqlSession& session);
// The same function for the table of notes.
void make_notes_table(SqlSession& session);

// Brings the database to version steps.size(), all in one transaction. Throws ConfigError when the
// database is newer, or when it is older and `access` is ReadOnly; DataError when it holds no store
// and `access` is ReadOnly.
void prepare_schema(SqlSession& session, Access access,
                    std::span<const char* const> steps = schema_steps());

}  // namespace convoy::jobs
