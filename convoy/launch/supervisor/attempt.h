// SPDX-License-Identifier: Apache-2.0
//
// One attempt of a job's ranks on this host, from the start of their processes until all they
// started is gone.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/supervisor/health/flight_pages.h"
#include "convoy/launch/supervisor/health/timer_watch.h"
#include "convoy/launch/supervisor/launcher.h"
#include "convoy/machine/processes/child_process.h"
#include "convoy/machine/processes/descendants.h"
#include "convoy/machine/processes/descriptor_limit.h"
#include "convoy/machine/processes/guard.h"
#include "convoy/machine/processes/memory_kills.h"
#include "convoy/machine/processes/reserved_port.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::launch {

// Runs the ranks of this node once. It reacts to ranks that end, to signals, to messages of other
// nodes and to deadlines. For one thread; call run() once.
class Attempt {
 public:
  Attempt(const LaunchSpec& spec, processes::SignalStream& signals, Peers* peers);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  LaunchReport run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { Running, Stopping, Failing, Killing };

  struct Rank {
    processes::ChildProcess process;
    std::filesystem::path error_file;
    bool running = true;
    bool held = false;  // ended, but a debugger that traces the rank has not let go yet
    KilledFor killed_for = KilledFor::Nothing;
  };

  void start_ranks();
  std::map<std::string, std::string> environment_of(int local_rank, const JobLayout& job) const;
  std::filesystem::path error_file_of(int local_rank) const;
  void wait_for_something();
  int wait_limit_ms() const;
  void read_stream(int local_rank, Stream stream);
  void handle_signals();
  void handle_signal(int signal);
  void handle_peers();
  void begin_stopping(const std::string& why);
  void leave_for(int signal);
  void report_early_exit();
  void handle_guard();
  void handle_health();
  void handle_timers();
  void handle_device_faults();
  void handle_device_fault(const monitor::DeviceFault& fault);
  std::optional<int> rank_of(pid_t pid) const;
  void fail_while_it_runs(RankEnd end);
  void reap(int local_rank);
  RankEnd describe_end(int local_rank, const processes::ChildEnd& child);
  void after_end(const RankEnd& end);
  void fail_no_later_than(Clock::time_point time);
  void begin_failing(Clock::time_point now);
  void handle_deadlines();
  void drain(int local_rank);
  void signal_all(int signal);
  void ask_to_end(int signal);
  void kill_all(KilledFor reason);
  std::vector<int> running_ranks() const;
  bool may_still_end();
  void give_up_on_unkillable();
  void note_failure(const RankEnd& end);
  void read_flights();
  void keep_flights();
  void close_logs();
  bool any_running() const;

  const LaunchSpec& spec_;
  const bool reads_stdin_;  // local rank 0 does
  Peers* peers_;
  processes::SignalStream& signals_;
  processes::ScratchFolder scratch_;
  processes::DescriptorLimit descriptor_limit_;
  std::string mark_;
  processes::DescendantKeeper descendants_;
  processes::Guard guard_;
  FlightPages pages_;
  HealthWatch health_;
  std::optional<TimerWatch> timers_;
  LogRouter logs_;
  processes::MemoryKills memory_kills_;
  std::optional<processes::ReservedPort> port_;
  std::vector<Rank> ranks_;
  LaunchReport report_;
  Phase phase_ = Phase::Running;
  bool told_peers_ = false;
  // The last USR1 or USR2 that this launcher got. A rank that leaves with 75 may leave because of
  // it.
  int user_signal_ = 0;
  // The signal that asked ranks of another node to stop. This launcher may get the same signal
  // once.
  int peers_signal_ = 0;
  // when to report the ranks that still run
  std::optional<Clock::time_point> early_exit_report_at_;
  std::optional<Clock::time_point> fail_at_;     // when to ask the other ranks to end
  std::optional<Clock::time_point> kill_at_;     // when to kill them
  std::optional<Clock::time_point> give_up_at_;  // when to stop waiting for them
  int give_up_turns_ = 0;                        // how often give_up_at_ was put off
};

}  // namespace convoy::launch
