// SPDX-License-Identifier: Apache-2.0
//
// Bodies of SqlStore's transaction templates, for its own .cpp files.
#pragma once

#include "convoy/core/jobs/sql/sql_store.h"

namespace convoy::jobs {

template <class Body>
auto SqlStore::attempt(Begin kind, Body&& body) {
  const auto deadline = std::chrono::steady_clock::now() + busy_limit_;
  for (;;) {
    try {
      session_->begin(kind);
      now_ms_.reset();
      if (has_notes_table_ == false) has_notes_table_.reset();
      auto result = body();
      session_->commit();
      return result;
    } catch (const RetryTransaction& error) {
      session_->rollback();
      has_notes_table_.reset();  // this transaction may have made it
      wait_or_give_up(error, deadline);
    } catch (...) {
      session_->rollback();
      has_notes_table_.reset();
      throw;
    }
  }
}

template <class Body>
auto SqlStore::write(int64_t num_results, Body&& body) {
  const bool durable = durability_is_due(num_results);
  auto result = attempt(durable ? Begin::DurableWrite : Begin::Write, std::forward<Body>(body));
  note_committed(num_results, durable);
  return result;
}

template <class Body>
auto SqlStore::read(Body&& body) {
  return attempt(Begin::Read, std::forward<Body>(body));
}

}  // namespace convoy::jobs
