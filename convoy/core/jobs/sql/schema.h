// SPDX-License-Identifier: Apache-2.0
//
// The tables of the store and how older ones become today's.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/session.h"

namespace convoy::jobs {

// A dialect's names of the types that stand as @KEY@, @INT@ and @BLOB@ in a script.
struct ColumnTypes {
  std::string_view key;
  std::string_view integer;
  std::string_view bytes;
};
std::string with_types(std::string script, const ColumnTypes& types);

// Entry n turns version n into n + 1; an empty database has version 0. Entries are never changed,
// only added.
std::span<const char* const> schema_steps();

// The table of results put aside, in a store that has none. It came after version 1 and is made
// when it is first needed, so that older stores are read as they are. Within a write transaction.
void make_former_table(SqlSession& session);
// The same of the table of notes.
void make_notes_table(SqlSession& session);

// Brings the database to version steps.size(), all in one transaction. Throws ConfigError when it
// is newer than that, or older and may not be written; DataError when it holds no store and may not
// be written.
void prepare_schema(SqlSession& session, Access access,
                    std::span<const char* const> steps = schema_steps());

}  // namespace convoy::jobs
