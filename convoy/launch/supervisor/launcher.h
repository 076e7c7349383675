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
  std::string json_line;           // the same for scripts; else empty
  std::string error_text;          // the whole error file
  std::string last_lines;          // the last lines it wrote
  std::filesystem::path log_file;  // empty: there is none
  // Kept with the logs; empty: the rank left none, or logs are not kept.
  std::filesystem::path error_file;
  bool after_first_failure = false;  // it ended after it had been asked to end
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
  int exit_code = 0;       // Fail: the job's
  std::string sentence;    // Fail: the root cause, with node and rank
  int rank = -1;           // Fail: that failed; -1 = none, or unknown
  std::string last_lines;  // for Fail: the rank's last lines
  int signal = 0;  // Stop, Resize: by which ranks there were asked to save and leave; 0 = TERM
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
  std::vector<int> cpus;         // it may run on these only; empty = as the launcher
  std::string device_uuid = {};  // device that it is to compute on; empty = CPUs
};

enum class OnDeviceFault {
  Stop,  // a fatal fault of a rank's device is that rank's failure, with 14
  Flag,  // it is a warning
};

struct LaunchSpec {
  // argv. The first is looked up in PATH unless it has a '/'. "${local_rank}" in the others is
  // replaced, as torchrun does.
  std::vector<std::string> program;
  JobLayout job;                                   // master_port 0: one is reserved
  std::map<std::string, std::string> environment;  // added to this process's own
  std::vector<RankSetup> ranks;                    // by local rank; empty = nothing special
  LogOptions logs;
  std::vector<int> stop_signals = processes::default_stop_signals();
  bool pass_stop_signal = false;  // ranks get the signal that came; false: TERM, whatever came
  // local rank 0 has the launcher's stdin (in the foreground, if it is a terminal); else /dev/null,
  // as the others
  bool first_rank_reads = false;
  bool early_exit_is_failure = true;  // a rank that ends with 0 while others run on: 13
  std::chrono::milliseconds early_exit_wait{10'000};  // ranks do not end in the same instant
  std::chrono::milliseconds stop_grace{60'000};       // between a stop request and KILL: ranks save
  // A further stop signal this soon after the first is the same request, not a hurry.
  std::chrono::milliseconds stop_repeat{0};
  // Between the first failure and KILL for the others.
  std::chrono::milliseconds failure_grace{1'000};
  std::chrono::milliseconds kill_wait{5'000};  // for what not even KILL ends
  HealthOptions health;
  // Faults of the devices of `ranks`, over all attempts; null: they are not watched.
  std::shared_ptr<monitor::FaultWatch> faults = {};
  OnDeviceFault on_device_fault = OnDeviceFault::Stop;
  // Ranks are given a named pipe to set countdown timers by (torchrun's file-based watchdog); empty
  // = in the private folder.
  std::optional<std::filesystem::path> timer_pipe;
  // The folder for flight-RANK.json of each rank at a failure; empty = none.
  std::filesystem::path flight_folder;
};

struct LaunchReport {
  int exit_code = 0;    // the root cause's
  int stop_signal = 0;  // the signal that asked the launcher to stop, if any
  // This launcher itself got a stop signal; one before that time is the same request, not a hurry.
  std::optional<std::chrono::steady_clock::time_point> stop_repeats_until;
  std::vector<RankEnd> ends;    // ends of this host's ranks, in the order in which they ended
  bool killed_by_stop = false;  // a second stop signal, or ranks that needed longer than the grace
  bool ended_early = false;  // the first to end did so in good order, but the others did not follow
  bool resized = false;      // ended for a change of members
  int root_cause = -1;       // index into ends; -1 = no failure, or not here
  std::optional<PeerOrder> peer_failure;      // the root cause is on another node
  std::chrono::milliseconds failure_grace{};  // time that ranks had, for KilledFor::FailureGrace
  std::vector<int> unkillable;                // ranks that were still there after KILL and the wait
  std::string diagnosis;  // the ranks that did not enter a collective; empty = unknown
  std::string diagnosis_json;
  std::vector<telemetry::RankFlight> flights;  // at the first failure
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
