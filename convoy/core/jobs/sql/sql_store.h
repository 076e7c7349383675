// SPDX-License-Identifier: Apache-2.0
//
// JobStore over one SQL connection: the same statements for SQLite and PostgreSQL.
//
// Invariant: code that changes a task's row, ranges, parts or result holds the lock of its task row
// (SQLite: the lock of the whole file). So a task's ranges, parts and untouched units always cover
// [0, units) without overlap.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <unordered_set>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/rows.h"
#include "convoy/core/jobs/sql/session.h"

namespace convoy::jobs {

class SqlStore : public JobStore {
 public:
  // The session's schema must be prepared already.
  SqlStore(std::unique_ptr<SqlSession> session, std::chrono::milliseconds busy_limit,
           std::function<bool(std::chrono::milliseconds)> keep_waiting = {});

  GroupRegistration register_group(const std::string& name, const std::string& workload,
                                   const std::string& version) override;
  std::vector<Group> groups() override;
  using JobStore::add;
  int64_t add(int64_t group, const TaskList& tasks) override;
  std::vector<Lease> claim(const ClaimRequest& request) override;
  std::vector<bool> renew(std::span<Lease> leases, std::chrono::milliseconds lease) override;
  std::vector<Receipt> complete(std::span<const Completion> completions,
                                const Merge& merge) override;
  HandedIn hand_in(std::span<const NewNote> notes, std::span<const Completion> completions,
                   const Merge& merge) override;
  std::vector<Note> notes(std::span<const int64_t> tasks) override;
  std::vector<FailOutcome> fail(std::span<const RangeFailure> failures, int max_attempts) override;
  int64_t release(const std::string& owner) override;
  std::vector<Lease> leases(int64_t group) override;
  std::vector<Part> progress(int64_t task) override;
  std::vector<TaskRecord> unfinished_complete(int64_t group) override;
  std::vector<bool> finish(std::span<const Finish> results) override;
  int64_t reopen_failed(int64_t group) override;
  int64_t redo(std::span<const int64_t> tasks) override;
  std::vector<FormerResult> former_results(int64_t group) override;
  Counts counts(int64_t group) override;
  int64_t count_open(int64_t group, int64_t at_most) override;
  void for_each_task(int64_t group, const std::function<void(const TaskRecord&)>& visit) override;
  void for_each_task_ahead(int64_t group,
                           const std::function<void(const TaskRecord&)>& visit) override;
  std::map<std::string, int64_t> tell_clock(const std::string& name) override;
  void forget_clock(const std::string& name) override;
  void sync() override;
  std::string name() const override { return session_->name(); }

  // Reads every row of every table. Throws DataError at the first damaged one.
  void verify_all();

 private:
  struct Claim;
  using TaskId = std::array<uint8_t, 32>;
  // Uses the first bytes of the id as its hash value: the id is a SHA-256 already.
  struct FirstBytes {
    size_t operator()(const TaskId& id) const {
      size_t word = 0;
      std::memcpy(&word, id.data(), sizeof word);
      return word;
    }
  };
  using IdSet = std::unordered_set<TaskId, FirstBytes>;

  // Runs `body` as one transaction. Retries while the database requests it and the busy limit
  // lasts.
  template <class Body>
  auto write(int64_t num_results, Body&& body);
  template <class Body>
  auto read(Body&& body);
  template <class Body>
  auto attempt(Begin kind, Body&& body);
  bool durability_is_due(int64_t num_results) const;
  void note_committed(int64_t num_results, bool durable);
  void wait_or_give_up(const RetryTransaction& error,
                       std::chrono::steady_clock::time_point deadline);

  std::vector<SqlRow> note(const std::string& key, const std::string& value);
  std::vector<SqlRow> noted(const std::string& key);  // one value, or no row
  void note_run(int64_t group, bool is_new);
  enum class Damage { Throw, Note };
  std::vector<Group> read_groups(Damage damage);
  void read_times(Group& group);
  Group group(int64_t number);
  IdSet known_ids(int64_t group, const std::vector<TaskId>& wanted);
  int64_t add_missing(int64_t group, const TaskList& tasks);
  bool has_list(int64_t group, const TaskList& tasks);

  void read_tasks(int64_t group, int64_t after, int64_t at_most, RowPage& page);
  int64_t last_of(const RowPage& page, int64_t at_most) const;
  void visit_page(const RowPage& page, const std::function<void(const TaskRecord&)>& visit) const;
  std::optional<TaskRow> locked_task(int64_t number);
  std::optional<RangeRow> held_range(const Lease& lease);
  void update_task(const TaskRow& task);
  void update_tasks(std::span<const TaskRow> tasks);
  int64_t insert_range(const RangeRow& range);
  void remove_range(int64_t number);
  void reopen_range(const RangeRow& range, int64_t attempt);
  void fail_task(TaskRow& task, const Failure& failure);
  void reopen_units(TaskRow& task);
  bool finish_task(TaskRow& task, const Result& result, int64_t finished_ms = 0);
  void put_result_aside(int64_t task);
  // Time of this transaction; a server is asked once.
  int64_t now_ms();

  void claim_returned(Claim& claim);
  void claim_untouched(Claim& claim, bool wait);
  void hand_out(Claim& claim, const TaskRow& task, RangeRow range);
  void give_numbers(Claim& claim);

  void complete_task(int64_t task, std::span<const size_t> which,
                     std::span<const Completion> completions, const Merge& merge,
                     std::vector<Receipt>& receipts);
  void add_part(const TaskRow& task, Part part, const Merge& merge);

  bool has_notes_table();
  void keep_notes(int64_t task, std::span<const size_t> which, std::span<const NewNote> notes,
                  std::vector<bool>& kept);
  void drop_notes(int64_t task);

  std::unique_ptr<SqlSession> session_;
  std::chrono::milliseconds busy_limit_;
  std::function<bool(std::chrono::milliseconds)> keep_waiting_;
  std::optional<int64_t> now_ms_;
  std::optional<bool> has_notes_table_;  // queried once per transaction; stays true
  std::map<int64_t, Group> groups_;      // groups seen so far; they never change
  int64_t results_at_risk_ = 0;          // committed, but lost in a power cut
  std::chrono::steady_clock::time_point oldest_at_risk_{};
};

}  // namespace convoy::jobs
