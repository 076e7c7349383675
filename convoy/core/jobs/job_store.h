// SPDX-License-Identifier: Apache-2.0
//
// The durable store of tasks, leases and results of a task farm: one SQLite file, or a PostgreSQL
// database shared by many nodes, with one interface and the same guarantees. Any number of
// processes may use one store at once. Each process opens its own JobStore, never shares it over
// fork(), and uses it from one thread at a time.
//
// Guarantees. Each unit of a task counts exactly once and a task has one result, whichever
// processes are killed at any time: every call is one transaction, and a lease that was taken over
// is refused. No lock outlives its process; a lease outlives it until it expires. Every row carries
// a checksum that is verified when the row is read.
//
// Durability. Data of a call that returned survive the kill of every process. They also survive a
// power cut, except for the last results and notes: those become durable with the call that brings
// the 10th of them, or with the first writing call 2 s after the oldest, or with sync(). A call
// with 10 or more results is durable when it returns. Call sync() when idle and before exit. It
// waits for one sync of the disk (1-10 ms), for any number of results: pass 100 or more cheap tasks
// per call. On network file systems (NFS, SMB, Lustre, FUSE ...) SQLite runs without its
// write-ahead log: every call is durable when it returns, and slower. PostgreSQL: the server's
// synchronous_commit decides.
//
// All calls throw DataError (exit 10: the store is damaged; location().file names it) and IoError
// (exit 12: disk full, read-only, locked by another process beyond the busy limit, server not
// reachable). After an IoError the call has had no effect and may be repeated.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
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
  bool rollback_journal = false;  // SQLite: no write-ahead log, as on network file systems
  std::chrono::milliseconds busy_limit{15'000};    // waiting for another process, or a first answer
  std::chrono::milliseconds server_limit{15'000};  // waiting for a server to come back
  // Called between attempts to reach a server, with the rest of the time limit; false = give
  // up now. Empty = keep waiting. May also be used to report the outage.
  std::function<bool(std::chrono::milliseconds left)> keep_waiting = {};
};

struct GroupRegistration {
  Group group;
  std::vector<Group> others;  // groups of this name with another workload or version
};

struct ClaimRequest {
  int64_t group = 0;
  // Host, process and start time of the process that claims; no other process ever has the same
  // text.
  std::string owner;
  int64_t max_ranges = 1;
  int64_t units_per_range = 1;
  std::chrono::milliseconds lease{60'000};
  int max_attempts =
      0;  // a range whose leases expired this often fails its task ("lost"); 0 = never
};

struct Completion {
  Lease lease;
  std::string payload;
  // Number of units done, from lease.first on; at least 1. nullopt = all units. The other units are
  // open again.
  std::optional<int64_t> count = {};
  std::optional<Result> result;  // result of the task, used only when these are its last units
};

struct Receipt {
  bool counted =
      false;  // false: taken over, or the task is finished already; the payload was dropped
  int64_t units_done = 0;
  int64_t units = 0;
};

struct NewNote {
  Lease lease;  // any lease of the task
  std::string key;
  std::string payload;
};

struct HandedIn {
  // One value per note. False: the lease was taken over or the task is finished, and the note was
  // dropped.
  std::vector<bool> kept;
  std::vector<Receipt> receipts;  // one per completion, in the same order
};

struct RangeFailure {
  Lease lease;
  Failure failure;
};

struct Finish {
  int64_t task = 0;
  Result result;
  // Time of a result copied from another task; 0 = now.
  int64_t finished_ms = 0;
};

// The outcome of reporting a failed range.
enum class FailOutcome { Retry, TaskFailed, NotCounted };

// Combines the payloads of [a, a+n) and of [a+n, ...). Must be associative. Empty function: parts
// stay separate.
using Merge = std::function<std::string(const std::string& left, const std::string& right)>;

class JobStore {
 public:
  virtual ~JobStore() = default;

  // Creates the group when it does not exist. Idempotent.
  virtual GroupRegistration register_group(const std::string& name, const std::string& workload,
                                           const std::string& version) = 0;
  // A group with a damaged row has its `problem` set; the other groups are still returned.
  virtual std::vector<Group> groups() = 0;

  // Adds the tasks that the group lacks and returns their number; 1e5 take about a second. Uses
  // transactions of many tasks each: after a kill, call it again. If the list's digest equals the
  // digest of the list last added to the group, its tasks are not read; otherwise each task may be
  // read twice.
  virtual int64_t add(int64_t group, const TaskList& tasks) = 0;
  int64_t add(int64_t group, std::span<const NewTask> tasks);

  // Returns ranges of open tasks; each is granted whole or not at all. Order: expired and returned
  // ranges, then by priority, then in order of add(). Each has at most `units_per_range` units; one
  // task may give several ranges. Empty: no work at the moment.
  virtual std::vector<Lease> claim(const ClaimRequest& request) = 0;
  // Moves the expiry of leases that still hold to `lease` from now, in place. Returns false for
  // each lease that no longer holds: stop its work.
  virtual std::vector<bool> renew(std::span<Lease> leases, std::chrono::milliseconds lease) = 0;
  // Reports finished ranges. A lease that expired and was not taken over still counts.
  virtual std::vector<Receipt> complete(std::span<const Completion> completions,
                                        const Merge& merge) = 0;
  // Adds notes and completes ranges in one transaction, notes first. When the task already has a
  // note of that key, the first payload stays. A task's notes outlive its leases. They are dropped
  // with its parts when the task gets its result, which covers their content.
  virtual HandedIn hand_in(std::span<const NewNote> notes, std::span<const Completion> completions,
                           const Merge& merge) = 0;
  // The notes of these tasks, by task and then in the order in which they were added.
  virtual std::vector<Note> notes(std::span<const int64_t> tasks) = 0;
  // Reopens the range until it has failed `max_attempts` times; its task is then Failed with this
  // failure.
  virtual std::vector<FailOutcome> fail(std::span<const RangeFailure> failures,
                                        int max_attempts) = 0;
  // Reopens all leases of an owner that is gone or gives them back; they do not count as attempts.
  // Returns their number.
  virtual int64_t release(const std::string& owner) = 0;
  // Leases of open tasks, including expired ones.
  virtual std::vector<Lease> leases(int64_t group) = 0;

  virtual std::vector<Part> progress(int64_t task) = 0;  // in order of `first`
  // Open tasks with all units done, left by a runner that was killed before finish().
  virtual std::vector<TaskRecord> unfinished_complete(int64_t group) = 0;
  // Returns false for a task that already has a result, which stays. Value and Censored drop the
  // task's parts, notes and leases.
  virtual std::vector<bool> finish(std::span<const Finish> results) = 0;
  // Reopens failed tasks; their attempts start at zero. Finished units stay, except when all units
  // of the task were done. Returns the number of tasks.
  virtual int64_t reopen_failed(int64_t group) = 0;
  // Reopens each of these tasks that has a result, with all its units and without notes. Its result
  // is kept as a former result. Returns the number of reopened tasks.
  virtual int64_t redo(std::span<const int64_t> tasks) = 0;
  // Returns the former results of the group's tasks, oldest first.
  virtual std::vector<FormerResult> former_results(int64_t group) = 0;

  virtual Counts counts(int64_t group) = 0;
  // Number of open tasks, counted up to `at_most`: the time does not grow with the group.
  virtual int64_t count_open(int64_t group, int64_t at_most) = 0;
  // Visits every task of the group in the order of add().
  virtual void for_each_task(int64_t group,
                             const std::function<void(const TaskRecord&)>& visit) = 0;
  // The same in less time: the next page of tasks is fetched on another thread meanwhile, so
  // `visit` must not use the store.
  virtual void for_each_task_ahead(int64_t group,
                                   const std::function<void(const TaskRecord&)>& visit) = 0;

  // Stores the store's present time as this process reads it, in milliseconds since 1970, under a
  // name that only this process uses. Returns the stored times of all names. In PostgreSQL all
  // times come from the clock of the server; in a file each comes from the clock of its process's
  // host.
  virtual std::map<std::string, int64_t> tell_clock(const std::string& name) = 0;
  virtual void forget_clock(const std::string& name) = 0;

  virtual void sync() = 0;
  virtual std::string name() const = 0;  // path, or URL without its password
};

// True for a file whose locks may not hold between hosts. False when this cannot be determined.
bool on_network_file_system(const std::string& url);

// `url`: a path or sqlite:PATH (made when missing; Access::ReadOnly: DataError), postgresql://...,
// postgres://... or libpq's "host=... dbname=...". Throws ConfigError (exit 2) for a store of a
// newer Convoy or an unknown scheme; DataError for a file that is no store or is damaged (small
// files are checked whole, for reading without their rows); IoError before any work when it cannot
// be written. An older schema is migrated. Blocks.
std::unique_ptr<JobStore> open_store(const std::string& url, const StoreOptions& options = {});

}  // namespace convoy::jobs
