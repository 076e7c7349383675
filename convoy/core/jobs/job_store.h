// SPDX-License-Identifier: Apache-2.0
//
// The durable store of tasks, leases and results of a task farm: one SQLite file, or a PostgreSQL
// database shared by many nodes, with one interface and the same promises. Any number of processes
// may use one store at once; each opens its own JobStore, never shares one over fork(), and uses it
// from one thread at a time.
//
// Promises. A unit of a task counts once for ever and a task has one result, whatever is killed
// when: every call is one transaction, and a lease that was taken over is refused. No lock outlives
// its process; a lease outlives it until it expires. Every row carries a checksum that is verified
// when the row is read.
//
// Durability. What a call returned survives the kill of every process. It survives a power cut too,
// but for the last results and notes: those become safe with the call that brings the 10th of them,
// or with the first writing call 2 s after the oldest, or with sync(). A call with 10 or more
// results is safe when it returns. Call sync() when idle and before exit. That wait is one sync of
// the disk (1-10 ms), whatever the call brings: give cheap tasks 100 or more to a call. On network
// file systems (NFS, SMB, Lustre, FUSE ...) SQLite runs without its write-ahead log: every call is
// safe when it returns, and slower. PostgreSQL: every call is safe as the server's
// synchronous_commit says.
//
// All calls throw DataError (exit 10: the store is damaged; place().file names it) and IoError
// (exit 12: disk full, read-only, locked by another process beyond the busy limit, server not
// reachable). After an IoError nothing of the call happened, and the same call may be tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/jobs/task.h"

namespace convoy::jobs {

enum class Access { ReadWrite, ReadOnly };  // ReadOnly works in a folder that may not be written

struct StoreOptions {
  Access access = Access::ReadWrite;
  bool rollback_journal = false;  // SQLite: as on a network file system, wherever the file is
  std::chrono::milliseconds busy_limit{15'000};    // waiting for another process, or a first answer
  std::chrono::milliseconds server_limit{15'000};  // waiting for a server to come back
  // Asked between tries to reach a server that went away; false = give up now. Empty = true. May be
  // told of an outage this way, too, and how much of the limit is left.
  std::function<bool(std::chrono::milliseconds left)> keep_waiting = {};
};

struct GroupRegistration {
  Group group;
  std::vector<Group> others;  // same name, other workload or version: refuse, or go on beside them
};

struct ClaimRequest {
  int64_t group = 0;
  std::string worker;  // who: host, process and start time, so that nobody else has the name
  int64_t max_ranges = 1;
  int64_t units_per_range = 1;
  std::chrono::milliseconds lease{60'000};
  int max_attempts =
      0;  // a range whose leases expired this often fails its task ("lost"); 0 = never
};

struct Completion {
  Lease lease;
  std::string payload;
  int64_t count = 0;             // units done from lease.first on; 0 = all. The rest is open again
  std::optional<Result> result;  // the task's, used only when these are its last units
};

struct Receipt {
  bool counted =
      false;  // false: taken over, or the task is finished already; the payload was dropped
  int64_t units_done = 0;
  int64_t units = 0;
};

struct NewNote {
  Lease lease;  // of any range of the task
  std::string key;
  std::string payload;
};

struct HandedIn {
  // By note: false = the lease was taken over or the task is finished; then it was dropped.
  std::vector<bool> kept;
  std::vector<Receipt> receipts;  // by completion
};

struct RangeFailure {
  Lease lease;
  Failure failure;
};

struct Finish {
  int64_t task = 0;
  Result result;
  int64_t finished_ms = 0;  // of a result taken over from another task; 0 = now
};

// What became of a failed range.
enum class FailOutcome { Retry, TaskFailed, NotCounted };

// Payload of [a, a+n) and of [a+n, ...) to that of both. Must be associative. Empty: parts stay as
// they came.
using Merge = std::function<std::string(const std::string& left, const std::string& right)>;

class JobStore {
 public:
  virtual ~JobStore() = default;

  // Makes the group when it is new. Idempotent.
  virtual GroupRegistration register_group(const std::string& name, const std::string& workload,
                                           const std::string& version) = 0;
  // One with a damaged row has its `problem` and hides no other.
  virtual std::vector<Group> groups() = 0;

  // Adds the tasks that the group lacks and returns how many those are; 1e5 in about a second.
  // Transactions of many tasks each: after a kill, call it again. A list that was the last to be
  // added to the group, by its digest, is known without a look at its tasks; other tasks are asked
  // for once or twice.
  virtual int64_t add(int64_t group, const TaskList& tasks) = 0;
  int64_t add(int64_t group, std::span<const NewTask> tasks);

  // Ranges of open tasks, whole or nothing each: expired and returned ones first, then by priority,
  // then in order of add(). At most `units_per_range` units each, several of one task where it has
  // them. Empty: nothing to do now.
  virtual std::vector<Lease> claim(const ClaimRequest& request) = 0;
  // Moves the expiry of those leases that still hold to `lease` from now, in place; false for the
  // others: stop them.
  virtual std::vector<bool> renew(std::span<Lease> leases, std::chrono::milliseconds lease) = 0;
  // A lease that expired and was not taken over still counts.
  virtual std::vector<Receipt> complete(std::span<const Completion> completions,
                                        const Merge& merge) = 0;
  // Keeps notes and completes ranges in one transaction, notes first. A key that the task has
  // already keeps its first payload. A task's notes outlive its leases and are dropped with its
  // result, as its parts are: what they led to is in the result.
  virtual HandedIn hand_in(std::span<const NewNote> notes, std::span<const Completion> completions,
                           const Merge& merge) = 0;
  // Of these tasks, by task and then in the order in which they were kept.
  virtual std::vector<Note> notes(std::span<const int64_t> tasks) = 0;
  // The range is open again until it failed `max_attempts` times; then its task is Failed with this
  // failure.
  virtual std::vector<FailOutcome> fail(std::span<const RangeFailure> failures,
                                        int max_attempts) = 0;
  // All leases of a worker known to be gone, or given back: open again, not counted as attempts.
  // Returns how many.
  virtual int64_t release(const std::string& worker) = 0;
  // Leases of open tasks, expired ones too.
  virtual std::vector<Lease> leases(int64_t group) = 0;

  virtual std::vector<Part> progress(int64_t task) = 0;  // in order of `first`
  // Open tasks that have all their units: what a runner killed before finish() left.
  virtual std::vector<TaskRecord> unfinished_complete(int64_t group) = 0;
  // False for a task that has its result already; that one stays. Value and Censored drop the
  // task's parts, notes and leases.
  virtual std::vector<bool> finish(std::span<const Finish> results) = 0;
  // Failed tasks are open again, attempts start anew. Finished units stay, but where the task had
  // them all. Returns how many.
  virtual int64_t reopen_failed(int64_t group) = 0;
  // Those of these tasks that have a result are open again with all their units, and without notes.
  // Their results are kept as former ones. Returns how many.
  virtual int64_t redo(std::span<const int64_t> tasks) = 0;
  // Oldest first.
  virtual std::vector<FormerResult> former_results(int64_t group) = 0;

  virtual Counts counts(int64_t group) = 0;
  // Open tasks, but no more than `at_most`: takes no time that grows with the group.
  virtual int64_t count_open(int64_t group, int64_t at_most) = 0;
  // Every task of the group in the order of add().
  virtual void for_each_task(int64_t group,
                             const std::function<void(const TaskRecord&)>& visit) = 0;
  // The same in less time: the next tasks are fetched on another thread meanwhile, so `visit` must
  // not use the store.
  virtual void for_each_task_ahead(int64_t group,
                                   const std::function<void(const TaskRecord&)>& visit) = 0;

  virtual void sync() = 0;
  virtual std::string name() const = 0;  // path, or URL without its password
};

// A file whose locks may not hold between hosts. False for what can not be told.
bool on_network_file_system(const std::string& url);

// `url`: a path or sqlite:PATH (made when missing; Access::ReadOnly: DataError), postgresql://...,
// postgres://... or libpq's "host=... dbname=...". Throws ConfigError (exit 2) for a store of a
// newer Convoy or an unknown scheme; DataError for a file that is no store or is damaged (small
// files are checked whole, for reading without their rows); IoError before any work when it can not
// be written. An older schema is migrated. Blocks.
std::unique_ptr<JobStore> open_store(const std::string& url, const StoreOptions& options = {});

}  // namespace convoy::jobs
