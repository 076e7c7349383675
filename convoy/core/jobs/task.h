// SPDX-License-Identifier: Apache-2.0
//
// The content of a task farm's store: tasks made of units, leased ranges of units, and results.
// Plain values; job_store.h has the operations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::jobs {

// One version of one workload under a sweep's name. A changed version is another group of the same
// name, so that results of different code are never mixed.
struct Group {
  int64_t number = 0;  // number within this store
  std::string name;
  std::string workload;
  std::string version;
  // When the group was first and last registered, by the store's clock, in milliseconds since 1970.
  // 0: written by a version of Convoy without times.
  int64_t created_ms = 0;
  int64_t last_run_ms = 0;
  // Why the group's data cannot be trusted: one of its rows is damaged. Empty when all rows are
  // sound.
  std::string problem = {};
};

// Lower-case hexadecimal SHA-256 over workload, version, parameters and number of units,
// independent of the task's position. The parameters must be canonical (canonical_parameters), or
// equal tasks get different identities.
std::string task_id(std::string_view workload, std::string_view version,
                    std::string_view parameters, int64_t units);

// The same as 32 raw bytes.
std::array<uint8_t, 32> task_id_bytes(std::string_view workload, std::string_view version,
                                      std::string_view parameters, int64_t units);

// The same JSON object on one line: keys sorted, no blanks. Throws ConfigError when the text is no
// JSON object.
std::string canonical_parameters(std::string_view json);

// A task's units are [0, units); a simple task has one unit. All other input that decides the
// result is in `parameters`, including the seed.
struct NewTask {
  std::string parameters = "{}";  // canonical
  int64_t units = 1;
  int64_t priority = 0;  // higher goes first; use the expected cost for longest first
};

// Tasks that are made one at a time on request, so that a million of them need not be in memory.
struct TaskList {
  int64_t count = 0;
  std::function<NewTask(int64_t index)> task;
  // Hash over all tasks: equal only for equal lists. Empty when there is none.
  std::string digest = {};
};

enum class TaskState : int { Open = 0, Done = 1, Failed = 2 };

// A range of units that one owner may compute until `expires_ms`. A later claim of the range gets
// a lease with another number, and this one is then invalid.
struct Lease {
  int64_t number = 0;  // never used twice
  int64_t task = 0;    // number of the task in this store
  std::string task_id;
  std::string parameters;
  int64_t task_units = 1;
  int64_t first = 0;
  int64_t count = 1;
  std::string owner = {};
  int64_t expires_ms = 0;  // store's clock, milliseconds since 1970
  int attempt = 1;         // 1 = first; counts failures and expiries of this range
};

// A finished range. The caller's merge joins adjoining ranges.
struct Part {
  int64_t first = 0;
  int64_t count = 0;
  std::string payload = {};
};

// Intermediate data of a task, under a key of the caller's choice.
struct Note {
  int64_t task = 0;
  std::string key = {};
  std::string payload = {};
};

struct Failure {
  std::string kind = {};  // stable word: "crash", "timeout", "memory", "lost", "error", ...
  std::string message = {};
  int exit_code = -1;  // -1 = none
  int signal = 0;      // 0 = none
  int attempt = 0;     // attempt that failed last; filled in by JobStore::fail
  std::string stderr_tail = {};
  bool operator==(const Failure&) const = default;
};

enum class ResultKind : int { Value = 1, Failed = 2, Censored = 3 };

// A task's one final result. There is no default that looks like a number.
struct Result {
  ResultKind kind = ResultKind::Value;
  std::string payload = {};  // only for Value and Censored: the caller's text
  Failure failure = {};      // only for Failed
  bool operator==(const Result&) const = default;
};

// A result that JobStore::redo set aside.
struct FormerResult {
  int64_t task = 0;
  Result result = {};
  int64_t finished_ms = 0;  // as in TaskRecord
  int64_t replaced_ms = 0;  // when it was put aside, by the store's clock
};

struct TaskRecord {
  int64_t number = 0;
  int64_t group = 0;
  std::string id;
  std::string parameters;
  int64_t units = 1;
  int64_t units_done = 0;
  int64_t priority = 0;
  TaskState state = TaskState::Open;
  std::optional<Result> result = {};  // nullopt while the task is open
  // When the task got its result, by the store's clock, in milliseconds since 1970. 0: open, or
  // written by a version of Convoy without times.
  int64_t finished_ms = 0;
};

struct Counts {
  int64_t open = 0;
  int64_t done = 0;
  int64_t failed = 0;

  int64_t all() const { return open + done + failed; }
};

}  // namespace convoy::jobs
