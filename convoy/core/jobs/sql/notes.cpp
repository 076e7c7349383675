// SPDX-License-Identifier: Apache-2.0
//
// Notes of tasks that have no result yet. The first note creates their table, so that older
// versions of Convoy can use a store without notes.
#include "convoy/core/jobs/sql/transaction.h"

namespace convoy::jobs {

bool SqlStore::has_notes_table() {
  if (!has_notes_table_) has_notes_table_ = session_->has_table("convoy_notes");
  return *has_notes_table_;
}

// Locks the task, and keeps the notes whose leases still hold.
void SqlStore::keep_notes(int64_t number, std::span<const size_t> which,
                          std::span<const NewNote> notes, std::vector<bool>& kept) {
  const std::optional<TaskRow> task = locked_task(number);
  if (!task || task->state != TaskState::Open) return;
  for (const size_t index : which) {
    if (!held_range(notes[index].lease)) continue;
    const Note note{.task = number, .key = notes[index].key, .payload = notes[index].payload};
    session_->run(
        "INSERT INTO convoy_notes(task, key, payload, crc) VALUES($1, $2, $3, $4) "
        "ON CONFLICT(task, key) DO NOTHING",
        {number, note.key, Bytes{note.payload}, crc_of(note)});
    kept[index] = true;
  }
}

void SqlStore::drop_notes(int64_t task) {
  if (has_notes_table()) session_->run("DELETE FROM convoy_notes WHERE task = $1", {task});
}

std::vector<Note> SqlStore::notes(std::span<const int64_t> tasks) {
  std::vector<SqlRow> parameters;
  for (const int64_t task : tasks) parameters.push_back({task});
  const std::vector<SqlRow> rows = read([&] {
    if (!has_notes_table()) return std::vector<SqlRow>();
    return session_->run_many(
        "SELECT number, task, key, payload, crc FROM convoy_notes WHERE task = $1 ORDER BY number",
        parameters);
  });
  std::vector<Note> notes;
  for (const SqlRow& row : rows) notes.push_back(decode_note(row, session_->name()));
  return notes;
}

}  // namespace convoy::jobs
