// SPDX-License-Identifier: Apache-2.0
//
// The consequences of a rank's end for the others.
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <csignal>

#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"
#include "convoy/launch/supervisor/attempt.h"
#include "convoy/launch/supervisor/health/collective_diagnosis.h"
#include "convoy/launch/supervisor/health/process_state.h"
#include "convoy/launch/supervisor/root_cause.h"
#include "convoy/machine/processes/error_file.h"

namespace convoy::launch {
namespace {

// A rank that lost its peer may be seen before the peer that failed: ends of other ranks are
// awaited this long.
constexpr std::chrono::milliseconds kPeerLostWait{400};
// The output of a rank that has ended is in the pipe already. If another process keeps the pipe
// open, the launcher waits this long and no longer.
constexpr std::chrono::milliseconds kOutputWait{200};
// Ranks do not end in the same instant; after this time a notice names the ranks that are awaited.
constexpr std::chrono::milliseconds kEarlyExitNotice{10'000};

}  // namespace

void Attempt::drain(int local_rank) {
  processes::ChildProcess& process = ranks_[static_cast<size_t>(local_rank)].process;
  const auto until = Clock::now() + kOutputWait;
  while ((process.output.open() || process.errors.open()) && Clock::now() < until) {
    pollfd watched[2] = {{process.output.get(), POLLIN, 0}, {process.errors.get(), POLLIN, 0}};
    ::poll(watched, 2, 10);
    if (watched[0].revents != 0) read_stream(local_rank, Stream::Output);
    if (watched[1].revents != 0) read_stream(local_rank, Stream::Errors);
  }
  process.output.reset();
  process.errors.reset();
  logs_.finish(local_rank);
}

RankEnd Attempt::describe_end(int local_rank, const processes::ChildEnd& child) {
  RankEnd end;
  end.rank = spec_.job.first_rank + local_rank;
  end.signal = child.signal;
  end.exit_code = child.signal != 0 ? 128 + child.signal : child.exit_code;
  end.after_first_failure = phase_ == Phase::Failing || phase_ == Phase::Killing;
  end.after_stop = phase_ == Phase::Stopping;
  if (end.signal == SIGKILL) end.killed_for = ranks_[static_cast<size_t>(local_rank)].killed_for;
  end.last_lines = logs_.last_lines(local_rank);
  end.log_file = logs_.file(local_rank);
  processes::ErrorFile error =
      processes::read_error_file(ranks_[static_cast<size_t>(local_rank)].error_file);
  if (!error.sentence.empty()) logs_.note(local_rank, error.sentence);
  if (!error.sentence.empty() && spec_.logs.layout == LogLayout::Torchrun)
    end.error_file = ranks_[static_cast<size_t>(local_rank)].error_file;
  end.sentence = std::move(error.sentence);
  end.json_line = std::move(error.json_line);
  end.error_text = std::move(error.text);
  if (end.signal == SIGKILL && !end.after_first_failure && memory_kills_.happened()) {
    end.exit_code = static_cast<int>(ExitCode::Resources);
    end.out_of_memory = true;
  }
  return end;
}

void Attempt::reap(int local_rank) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  if (!rank.running || !processes::ends_within(rank.process, std::chrono::milliseconds(0))) return;
  rank.held = !processes::can_be_reaped(rank.process.pid);
  if (rank.held) return;
  // The leader is a zombie until it is reaped, so its group's number cannot have been given away
  // yet.
  processes::signal_group(rank.process.pid, SIGKILL);
  guard_.forget(rank.process.pid);
  const processes::ChildEnd end = processes::wait_for_child(rank.process.pid);
  rank.running = false;
  health_.ended(local_rank);
  drain(local_rank);
  report_.ends.push_back(describe_end(local_rank, end));
  after_end(report_.ends.back());
}

void Attempt::fail_no_later_than(Clock::time_point time) {
  fail_at_ = fail_at_ ? std::min(*fail_at_, time) : time;
}

void Attempt::after_end(const RankEnd& end) {
  if (phase_ == Phase::Failing || phase_ == Phase::Killing) return;
  const auto now = Clock::now();
  if (end.exit_code == kStopped && user_signal_ != 0 && report_.stop_signal == 0)
    leave_for(user_signal_);
  if (ended_as_asked(end, report_)) {
    // The other ranks should end soon as well.
    if (spec_.early_exit_is_failure && phase_ == Phase::Running && any_running()) {
      if (!fail_at_)
        early_exit_report_at_ = now + std::min(kEarlyExitNotice, spec_.early_exit_wait / 2);
      fail_no_later_than(now + spec_.early_exit_wait);
    }
    return;
  }
  note_failure(end);
  // Ranks that were asked to stop may be saving: the grace of the stop limits them.
  if (phase_ == Phase::Running && any_running())
    fail_no_later_than(end.exit_code == kPeerLost ? now + kPeerLostWait : now);
}

void Attempt::report_early_exit() {
  early_exit_report_at_.reset();
  const auto left = std::chrono::ceil<std::chrono::seconds>(*fail_at_ - Clock::now());
  Log().warning(
      fmt::format("rank {} has ended and others run on ({}): in {} s that counts as a failure "
                  "(--early-exit-timeout; 0 = never)",
                  report_.ends.front().rank, fmt::join(running_ranks(), ", "), left.count()));
}

// A rank has saved and left because of a signal that was only passed on. The signal was therefore a
// request to stop.
void Attempt::leave_for(int signal) {
  report_.stop_signal = signal;
  if (peers_ != nullptr) peers_->report_stop(signal);
  if (phase_ == Phase::Running)
    begin_stopping(fmt::format("a rank has left for {}", processes::signal_name(signal)));
}

// Reads the flight records at the first failure here. Reports the failure to the other nodes. After
// a lost peer (13) a later failure is reported too, since it may be the cause.
void Attempt::note_failure(const RankEnd& end) {
  if (report_.flights.empty()) {
    read_flights();
    const CollectiveDiagnosis diagnosis = diagnose_collectives(report_.flights);
    report_.diagnosis = blame_text(diagnosis);
    report_.diagnosis_json = diagnosis_json(diagnosis);
    keep_flights();
  }
  if (peers_ == nullptr || told_peers_) return;
  told_peers_ = end.exit_code != kPeerLost;
  peers_->report_failure(end);
}

void Attempt::read_flights() {
  report_.flights = pages_.read();
  for (telemetry::RankFlight& flight : report_.flights)
    flight.ended =
        flight.ended || !ranks_[static_cast<size_t>(flight.rank - spec_.job.first_rank)].running;
}

void Attempt::keep_flights() {
  if (spec_.flight_folder.empty()) return;
  try {
    for (const telemetry::RankFlight& flight : report_.flights)
      if (flight.attached()) telemetry::write_flight_file(spec_.flight_folder, flight);
  } catch (const IoError& error) {
    Log().warning(error.sentence());
  }
}

void Attempt::begin_failing(Clock::time_point now) {
  phase_ = Phase::Failing;
  fail_at_.reset();
  early_exit_report_at_.reset();
  kill_at_ = now + spec_.failure_grace;
  ask_to_end(SIGTERM);
}

// Ends all ranks because of a rank that still runs.
void Attempt::fail_while_it_runs(RankEnd end) {
  const int local_rank = end.rank - spec_.job.first_rank;
  end.last_lines = logs_.last_lines(local_rank);
  end.log_file = logs_.file(local_rank);
  report_.ends.push_back(end);
  note_failure(end);
  begin_failing(Clock::now());
}

std::optional<int> Attempt::rank_of(pid_t pid) const {
  for (size_t local_rank = 0; local_rank < ranks_.size(); ++local_rank)
    if (ranks_[local_rank].running && processes::descends_from(pid, ranks_[local_rank].process.pid))
      return static_cast<int>(local_rank);
  return std::nullopt;
}

void Attempt::handle_timers() {
  if (!timers_) return;
  for (const TimerExpiry& expiry : timers_->check()) {
    // A process that is not ours is skipped; another container may have written its number.
    const std::optional<int> local_rank = rank_of(expiry.pid);
    if (!local_rank) continue;
    RankEnd end;
    end.rank = spec_.job.first_rank + *local_rank;
    const bool is_rank = ranks_[static_cast<size_t>(*local_rank)].process.pid == expiry.pid;
    end.sentence = fmt::format("{} did not finish `{}` in time: its timer expired {:.1f} s ago",
                               is_rank ? fmt::format("rank {} (process {})", end.rank, expiry.pid)
                                       : fmt::format("process {} of rank {}", expiry.pid, end.rank),
                               expiry.scope, expiry.late_seconds);
    if (expiry.signal == 0) {
      Log().warning(end.sentence + "; it requested no signal and goes on");
      continue;
    }
    end.sentence += fmt::format(", and it was sent {}", processes::signal_name(expiry.signal));
    Log().warning(end.sentence);
    ::kill(expiry.pid, expiry.signal);
    if (phase_ == Phase::Failing || phase_ == Phase::Killing) continue;
    end.exit_code = 128 + expiry.signal;
    end.timed_out = true;
    fail_while_it_runs(std::move(end));
  }
}

void Attempt::handle_device_faults() {
  if (!spec_.faults) return;
  for (const monitor::DeviceFault& fault : spec_.faults->take()) handle_device_fault(fault);
}

// The first rank on the device represents all ranks on it. Only the first fatal fault ends the
// ranks; later faults are printed.
void Attempt::handle_device_fault(const monitor::DeviceFault& fault) {
  const auto is_of_rank = [&fault](const RankSetup& rank) {
    return std::find(fault.uuids.begin(), fault.uuids.end(), rank.device_uuid) != fault.uuids.end();
  };
  const auto rank = std::find_if(spec_.ranks.begin(), spec_.ranks.end(), is_of_rank);
  const bool is_fatal = fault.severity == monitor::XidSeverity::Fatal &&
                        spec_.on_device_fault == OnDeviceFault::Stop && rank != spec_.ranks.end() &&
                        phase_ == Phase::Running;
  logs_.end_open_lines();
  if (!is_fatal) {
    Log().warning(fmt::format("{} ({})", fault.sentence, fault.to_do));
    return;
  }
  RankEnd end;
  end.rank = spec_.job.first_rank + static_cast<int>(rank - spec_.ranks.begin());
  end.exit_code = static_cast<int>(ExitCode::Device);
  end.device_fault = true;
  end.hint = fault.to_do;
  end.sentence = fmt::format("rank {}: {} ({})", end.rank, fault.sentence, fault.to_do);
  Log().warning(end.sentence);
  fail_while_it_runs(std::move(end));
}

// On a busy machine a killed rank may wait long for a processor before it ends.
bool Attempt::may_still_end() {
  constexpr int kMostTurns = 12;
  if (++give_up_turns_ >= kMostTurns) return false;
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    const auto state = rank.running ? read_process_state(rank.process.pid) : std::nullopt;
    return state && waits_for_processor(*state);
  });
}

void Attempt::give_up_on_unkillable() {
  if (may_still_end()) {
    give_up_at_ = Clock::now() + spec_.kill_wait;
    return;
  }
  for (size_t local_rank = 0; local_rank < ranks_.size(); ++local_rank) {
    Rank& rank = ranks_[local_rank];
    if (!rank.running) continue;
    rank.running = false;
    const int number = spec_.job.first_rank + static_cast<int>(local_rank);
    report_.unkillable.push_back(number);
    const ProcessState state = read_process_state(rank.process.pid).value_or(ProcessState());
    Log().warning(
        fmt::format("rank {} (process {}) did not end after SIGKILL: {}; it is left behind", number,
                    rank.process.pid, why_not_ended(state)));
  }
}

}  // namespace convoy::launch
