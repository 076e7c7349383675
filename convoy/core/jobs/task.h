// SPDX-License-Identifier: Apache-2.0
//
// What the store of a task farm holds: tasks made of units, ranges of units on lease, and results.
// Plain values; see job_store.h for what may be done with them.
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
// name, so that results of different code never meet.
struct Group {
  int64_t number = 0;  // of this store
  std::string name;
  std::string workload;
  std::string version;
  // When it was first and last registered, by the store's clock: milliseconds since 1970. 0: by a
  // Convoy that kept no times.
  int64_t created_ms = 0;
  int64_t last_run_ms = 0;
  // Why what is said of it can not be trusted: a row of it is damaged. Empty = it can.
  std::string problem = {};
};

// Lower-case hexadecimal SHA-256 over workload, version, parameters and count of units: never a
// position. The parameters must be canonical (canonical_parameters), or equal tasks get different
// identities.
std::string task_id(std::string_view workload, std::string_view version,
                    std::string_view parameters, int64_t units);

// The same as 32 raw bytes.
std::array<uint8_t, 32> task_id_bytes(std::string_view workload, std::string_view version,
                                      std::string_view parameters, int64_t units);

// The same JSON object on one line: keys sorted, no blanks. Throws ConfigError when it is no JSON
// object.
std::string canonical_parameters(std::string_view json);

// A task's units are [0, units); one unit is a simple task. Everything else that decides the
// numbers is in `parameters`, the seed too.
struct NewTask {
  std::string parameters = "{}";  // canonical
  int64_t units = 1;
  int64_t priority = 0;  // higher goes first; the expected cost gives longest first
};

// Tasks that are made one by one when they are asked for: a million of them need not be kept.
struct TaskList {
  int64_t count = 0;
  std::function<NewTask(int64_t index)> task;
  // Of a hash over all of them: equal texts only for equal lists. Empty: none.
  std::string digest = {};
};

enum class TaskState : int { Open = 0, Done = 1, Failed = 2 };

// A range of units that one worker may compute until `expires_ms`. Whoever claims it after that
// gets a lease of another number, and this one no longer counts.
struct Lease {
  int64_t number = 0;  // never used twice
  int64_t task = 0;    // number of the task in this store
  std::string task_id;
  std::string parameters;
  int64_t task_units = 1;
  int64_t first = 0;
  int64_t count = 1;
  std::string worker = {};
  int64_t expires_ms = 0;  // store's clock, milliseconds since 1970
  int attempt = 1;         // 1 = first; counts failures and expiries of this range
};

// A finished range. Adjoining ranges become one by the caller's merge.
struct Part {
  int64_t first = 0;
  int64_t count = 0;
  std::string payload = {};
};

// Something that a task has so far, under a name of the caller's.
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
  int attempt = 0;     // of the last try; filled in by JobStore::fail
  std::string stderr_tail = {};
  bool operator==(const Failure&) const = default;
};

enum class ResultKind : int { Value = 1, Failed = 2, Censored = 3 };

// A task's one final result. Never a default that looks like a number.
struct Result {
  ResultKind kind = ResultKind::Value;
  std::string payload = {};  // Value, Censored: the caller's text
  Failure failure = {};      // Failed
  bool operator==(const Result&) const = default;
};

// A result that JobStore::redo put aside.
struct FormerResult {
  int64_t task = 0;
  Result result = {};
  int64_t finished_ms = 0;  // TaskRecord
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
  std::optional<Result> result = {};  // none while open
  // When it got its result, by the store's clock: milliseconds since 1970. 0: open, or by a Convoy
  // that kept no times.
  int64_t finished_ms = 0;
};

struct Counts {
  int64_t open = 0;
  int64_t done = 0;
  int64_t failed = 0;

  int64_t all() const { return open + done + failed; }
};

}  // namespace convoy::jobs
