// SPDX-License-Identifier: Apache-2.0
//
// One attempt of a job on this host: starts the local ranks of a program with torchrun's worker
// environment, stores their output, ends all of them when one fails, here or on another node, and
// reports which failed first. The ranks' program does not matter. One call at a time per process:
// it owns the stop signals, USR1 and USR2 while it runs. Restarts and other nodes: supervisor.h.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record.h"
#include "convoy/launch/logs/log_router.h"
#include "convoy/launch/supervisor/health/health_watch.h"
#include "convoy/launch/supervisor/worker_environment.h"
#include "convoy/machine/monitor/gpus/fault_watch.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::launch {

// The reason why the launcher killed a rank that it had asked to end.
enum class KilledFor { Nothing, FailureGrace, ShutdownTimeout, SecondStop };

struct RankEnd {
  int rank = -1;      // global
  int exit_code = 0;  // 128 + n for signal n
  int signal = 0;
  std::string sentence;            // the rank's own error, from its error file; else empty
  std::string json_line;           // the same error as JSON; else empty
  std::string error_text;          // the whole error file
  std::string last_lines;          // the last lines it wrote
  std::filesystem::path log_file;  // empty: there is none
  // The error file, kept with the logs; empty: the rank left none, or logs are not kept.
  std::filesystem::path error_file;
  bool after_first_failure = false;  // ended after the rank had been asked to end
  // It ended after it had been asked to stop, or to make room for a resize.
  bool after_stop = false;
  KilledFor killed_for = KilledFor::Nothing;
  bool out_of_memory = false;  // the kernel killed it for its memory: exit_code is 12
  bool silent = false;         // ended by the launcher: its heartbeat stopped, see `sentence`
  bool stuck = false;          // ended by the launcher: ranks wait in collectives that differ
  bool timed_out = false;      // ended by the launcher: a timer of its own expired, see `sentence`
  bool device_fault = false;   // ended by the launcher: its GPU is unusable, see `sentence`
  std::string hint;            // one action for the user; empty = read its log

  bool still_ran() const { return silent || stuck || timed_out || device_fault; }
};

// A request of another node to this node's ranks.
struct PeerOrder {
  enum class Kind { Fail, Resize, Stop };
  Kind kind = Kind::Fail;
  int exit_code = 0;       // Fail: exit code of the job
  std::string sentence;    // Fail: the root cause, with node and rank
  int rank = -1;           // Fail: the rank that failed; -1 = none, or unknown
  std::string last_lines;  // for Fail: the rank's last lines
  int signal = 0;  // Stop, Resize: signal that asked the other node's ranks to leave; 0 = TERM
};

// The other nodes of the job, as the launcher's loop uses them. Driven by that loop; no call
// blocks.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int descriptor() const = 0;  // readable when next() has something
  virtual std::optional<PeerOrder> next() = 0;
  virtual void report_failure(const RankEnd& end) = 0;
  // This node's ranks were asked to stop, by this signal.
  virtual void report_stop(int signal) = 0;
};

// The settings that differ between ranks of this node.
struct RankSetup {
  std::map<std::string, std::string> environment;
  std::vector<int> cpus;         // CPUs that the rank may run on; empty = the launcher's
  std::string device_uuid = {};  // device that the rank computes on; empty = CPUs
};

enum class OnDeviceFault {
  Stop,  // a fatal fault of a rank's device fails the rank, with 14
  Flag,  // the fault is only a warning
};

struct LaunchSpec {
  // argv. The first word is looked up in PATH unless it has a '/'. "${local_rank}" in the other
  // words is replaced, as in torchrun.
  std::vector<std::string> program;
  JobLayout job;                                   // master_port 0: one is reserved
  std::map<std::string, std::string> environment;  // added to this process's own
  std::vector<RankSetup> ranks;                    // by local rank; empty = all alike
  LogOptions logs;
  std::vector<int> stop_signals = processes::default_stop_signals();
  bool pass_stop_signal = false;  // ranks get the launcher's stop signal; false: always TERM
  // Local rank 0 reads the launcher's stdin (if this is a terminal, only in the foreground).
  // Otherwise it reads /dev/null, as the other ranks do.
  bool first_rank_reads = false;
  bool early_exit_is_failure = true;  // 13 when a rank ends with 0 and others run on
  std::chrono::milliseconds early_exit_wait{10'000};  // ranks do not all end at once
  std::chrono::milliseconds stop_grace{60'000};       // between a stop request and KILL: ranks save
  // A second stop signal this soon after the first is the same request, not a request to hurry.
  std::chrono::milliseconds stop_repeat{0};
  // The time between the first failure and KILL for the other ranks.
  std::chrono::milliseconds failure_grace{1'000};
  std::chrono::milliseconds kill_wait{5'000};  // wait for ranks that KILL does not end
  HealthOptions health;
  // Watches the devices of `ranks` for faults, over all attempts; null: no watch.
  std::shared_ptr<monitor::FaultWatch> faults = {};
  OnDeviceFault on_device_fault = OnDeviceFault::Stop;
  // The named pipe by which ranks set countdown timers (torchrun's file-based watchdog). Empty = in
  // the private folder; nothing = no pipe.
  std::optional<std::filesystem::path> timer_pipe;
  // The folder for flight-RANK.json of each rank at a failure; empty = none.
  std::filesystem::path flight_folder;
};

struct LaunchReport {
  int exit_code = 0;    // the root cause's exit code
  int stop_signal = 0;  // the signal that asked the launcher to stop, if any
  // Set when this launcher itself got a stop signal. A second signal before this time is the same
  // request, not a request to hurry.
  std::optional<std::chrono::steady_clock::time_point> stop_repeats_until;
  std::vector<RankEnd> ends;    // ends of this host's ranks, in the order in which they ended
  bool killed_by_stop = false;  // a second stop signal, or ranks that needed longer than the grace
  bool ended_early = false;     // the first rank ended in good order, but others did not follow
  bool resized = false;         // ended because nodes join or leave
  int root_cause = -1;          // index into ends; -1 = no failure, or on another node
  std::optional<PeerOrder> peer_failure;      // set if the root cause is on another node
  std::chrono::milliseconds failure_grace{};  // time that ranks had, for KilledFor::FailureGrace
  std::vector<int> unkillable;                // ranks that were still there after KILL and the wait
  std::string diagnosis;  // the ranks that did not enter a collective; empty = unknown
  std::string diagnosis_json;
  std::vector<telemetry::RankFlight> flights;  // flight records at the first failure
  std::optional<int64_t> progress;             // the highest step any local rank completed

  bool failed() const { return root_cause >= 0 || peer_failure.has_value(); }
};

// Blocks until every rank and everything it started is gone. `signals` reads the spec's stop
// signals; `peers` may be null: no other nodes. Throws ConfigError when the program cannot be
// started, IoError when a process or log folder cannot be made.
LaunchReport run_ranks(const LaunchSpec& spec, processes::SignalStream& signals, Peers* peers);
LaunchReport run_ranks(const LaunchSpec& spec);

// The report to a person after a failure: the first failing rank with its last lines and files,
// then the others, and after `convoy: ` the first rank's error as the last line. Empty without a
// failure.
std::string failure_text(const LaunchReport& report);

// The cause alone, without `convoy: ` and the line break.
std::string failure_sentence(const LaunchReport& report);

// {"code","kind","rank",...}, the last stderr line of a failed command. Empty without a failure.
std::string failure_json(const LaunchReport& report);

}  // namespace convoy::launch
