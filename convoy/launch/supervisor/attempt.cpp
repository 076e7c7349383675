// SPDX-License-Identifier: Apache-2.0
//
// The loop of an attempt. The start of ranks: attempt_start.cpp; the handling of their ends:
// attempt_end.cpp.
#include "convoy/launch/supervisor/attempt.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/launch/supervisor/health/flight_text.h"
#include "convoy/launch/supervisor/root_cause.h"
#include "convoy/machine/processes/run_id.h"

namespace convoy::launch {
namespace {

// The time limit for a console that takes no output after a stop, and after a failure, which may be
// followed by a restart. There is no limit otherwise.
constexpr std::chrono::milliseconds kConsoleWaitAtStop{500};
constexpr std::chrono::milliseconds kConsoleWaitAtFailure{10'000};
// The interval between checks of a process that has ended but is still held by a debugger.
constexpr std::chrono::milliseconds kHeldWait{20};
// The time to wait for orphans, which are killed without a request to end.
constexpr std::chrono::milliseconds kOrphanWait{1'000};

// The mark in the environment of every process of this job. A job inside a rank of another job
// carries both marks.
std::string new_mark() {
  const auto around = environment_variable("CONVOY_JOB");
  return fmt::format("CONVOY_JOB={}{}", around ? *around + ":" : "", processes::new_run_id());
}

// A launcher in the background of a shell does not own the terminal: a rank that read from it would
// take what the person types for the shell, since the kernel stops only readers of the terminal's
// own session.
bool may_read_stdin() {
  return ::isatty(STDIN_FILENO) == 0 || ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

LogOptions log_options(const LaunchSpec& spec, bool reads_stdin) {
  LogOptions options = spec.logs;
  if (reads_stdin && ::isatty(STDIN_FILENO) != 0) options.prompting_local_rank = 0;
  options.num_local_ranks = spec.job.num_local_ranks;
  options.first_global_rank = spec.job.first_rank;
  options.role = spec.job.role;
  options.attempt = spec.job.restart_count;
  return options;
}

}  // namespace

Attempt::Attempt(const LaunchSpec& spec, processes::SignalStream& signals, Peers* peers)
    : spec_(spec),
      reads_stdin_(spec.first_rank_reads && may_read_stdin()),
      peers_(peers),
      signals_(signals),
      descriptor_limit_(spec.job.num_local_ranks),
      mark_(new_mark()),
      guard_(scratch_.path(), mark_),
      pages_(spec.job.num_local_ranks, spec.job.first_rank),
      health_(pages_, spec.health),
      logs_(log_options(spec, reads_stdin_)) {
  descendants_.leave_alone(guard_.pid());
  scratch_.make();  // the guard exists now, so the folder is removed in every case
  if (spec.timer_pipe)
    timers_.emplace(spec.timer_pipe->empty() ? scratch_.path() / "timers" : *spec.timer_pipe);
}

Attempt::~Attempt() {
  // Ranks are left only when something was thrown.
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    processes::signal_group(rank.process.pid, SIGKILL);
    guard_.forget(rank.process.pid);
    processes::wait_for_child(rank.process.pid);
  }
  descendants_.kill_orphans(kOrphanWait);
}

LaunchReport Attempt::run() {
  if (spec_.faults) spec_.faults->begin_attempt();
  start_ranks();
  while (any_running()) {
    wait_for_something();
    if (phase_ != Phase::Running) logs_.hurry();
    logs_.handle_deadline();
    handle_guard();
    handle_signals();
    handle_peers();
    for (int local_rank = 0; local_rank < spec_.job.num_local_ranks; ++local_rank) reap(local_rank);
    handle_health();
    handle_timers();
    handle_device_faults();
    handle_deadlines();
  }
  descendants_.kill_orphans(kOrphanWait);
  close_logs();
  report_.failure_grace = spec_.failure_grace;
  for (const telemetry::RankFlight& flight : pages_.read())
    if (flight.step >= 0) report_.progress = std::max(report_.progress.value_or(0), flight.step);
  conclude(report_);
  return std::move(report_);
}

void Attempt::close_logs() {
  std::optional<std::chrono::milliseconds> patience;
  if (phase_ != Phase::Running) patience = kConsoleWaitAtFailure;
  if (report_.stop_signal != 0) patience = kConsoleWaitAtStop;
  logs_.close(signals_.descriptor(), patience);
}

bool Attempt::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
}

int Attempt::wait_limit_ms() const {
  std::optional<Clock::time_point> first;
  for (const auto& deadline :
       {early_exit_report_at_, fail_at_, kill_at_, give_up_at_, logs_.next_deadline(),
        health_.next_deadline(), timers_ ? timers_->next_deadline() : std::nullopt})
    if (deadline && (!first || *deadline < *first)) first = deadline;
  const bool held = std::any_of(ranks_.begin(), ranks_.end(),
                                [](const Rank& rank) { return rank.running && rank.held; });
  if (const auto look = Clock::now() + kHeldWait; held && (!first || look < *first)) first = look;
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

void Attempt::wait_for_something() {
  struct Source {
    int local_rank;  // -1 = not the output of a rank
    Stream stream;
  };
  std::vector<pollfd> watched = {{signals_.descriptor(), POLLIN, 0}};
  std::vector<Source> sources = {{-1, Stream::Output}};
  const auto watch = [&](int descriptor, short events, int local_rank, Stream stream) {
    watched.push_back({descriptor, events, 0});
    sources.push_back({local_rank, stream});
  };
  if (peers_ != nullptr) watch(peers_->descriptor(), POLLIN, -1, Stream::Output);
  watch(guard_.descriptor(), POLLIN, -1, Stream::Output);
  if (timers_) watch(timers_->descriptor(), POLLIN, -1, Stream::Output);
  if (spec_.faults) watch(spec_.faults->descriptor(), POLLIN, -1, Stream::Output);
  for (const int console : logs_.waiting_consoles())
    if (console >= 0) watch(console, POLLOUT, -1, Stream::Output);
  for (int local_rank = 0; local_rank < spec_.job.num_local_ranks; ++local_rank) {
    const Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    if (!rank.running) continue;
    if (!rank.held) watch(rank.process.exited.get(), POLLIN, -1, Stream::Output);
    if (rank.process.output.open() && logs_.accepts(local_rank, Stream::Output))
      watch(rank.process.output.get(), POLLIN, local_rank, Stream::Output);
    if (rank.process.errors.open() && logs_.accepts(local_rank, Stream::Errors))
      watch(rank.process.errors.get(), POLLIN, local_rank, Stream::Errors);
  }
  if (::poll(watched.data(), watched.size(), wait_limit_ms()) <= 0) return;
  for (size_t index = 1; index < watched.size(); ++index)
    // Earlier reads may have filled the console.
    if (sources[index].local_rank >= 0 && watched[index].revents != 0 &&
        logs_.accepts(sources[index].local_rank, sources[index].stream))
      read_stream(sources[index].local_rank, sources[index].stream);
}

// Reads once only: a rank that writes without end must not delay signals and deadlines.
void Attempt::read_stream(int local_rank, Stream stream) {
  processes::ChildProcess& process = ranks_[static_cast<size_t>(local_rank)].process;
  Descriptor& descriptor = stream == Stream::Output ? process.output : process.errors;
  char bytes[64 << 10];
  const ssize_t received = ::read(descriptor.get(), bytes, sizeof(bytes));
  if (received > 0)
    logs_.take(local_rank, stream, {bytes, static_cast<size_t>(received)});
  else if (received == 0 || (errno != EAGAIN && errno != EINTR))
    descriptor.reset();
}

void Attempt::handle_signals() {
  while (const std::optional<int> signal = signals_.next()) handle_signal(*signal);
}

void Attempt::handle_signal(int signal) {
  if (signal == SIGPIPE) return;
  if (!processes::contains(spec_.stop_signals, signal)) {
    user_signal_ = signal;
    // The ranks have received this signal already, when another node reported it. Some ranks take a
    // second one as a request to hurry.
    if (std::exchange(peers_signal_, 0) != signal) signal_all(signal);
    return;
  }
  if (report_.stop_repeats_until) {
    if (Clock::now() < *report_.stop_repeats_until) return;
    report_.stop_signal = signal;
    report_.killed_by_stop = true;
    kill_all(KilledFor::SecondStop);
    return;
  }
  // A peer may have reported the stop already, since a job system signals every node. This signal
  // is then not a second request.
  if (report_.stop_signal == 0 && peers_ != nullptr) peers_->report_stop(SIGTERM);
  // A user signal may have made only some ranks leave: the ranks that still run must get this
  // signal.
  const bool asked_by_user_signal = phase_ == Phase::Stopping && (report_.stop_signal == SIGUSR1 ||
                                                                  report_.stop_signal == SIGUSR2);
  report_.stop_signal = signal;
  report_.stop_repeats_until = Clock::now() + spec_.stop_repeat;
  if (phase_ != Phase::Running && !asked_by_user_signal) return;
  begin_stopping(processes::signal_name(signal));
  ask_to_end(spec_.pass_stop_signal ? signal : SIGTERM);
}

void Attempt::handle_peers() {
  if (peers_ == nullptr) return;
  while (const std::optional<PeerOrder> order = peers_->next()) {
    if (order->kind == PeerOrder::Kind::Fail && !report_.peer_failure)
      report_.peer_failure = *order;
    if (phase_ != Phase::Running) continue;
    if (order->kind == PeerOrder::Kind::Fail) {
      told_peers_ = true;  // the peers know of the failure
      if (report_.flights.empty()) read_flights();
      begin_failing(Clock::now());
      continue;
    }
    const bool resize = order->kind == PeerOrder::Kind::Resize;
    const int signal = order->signal == 0 ? SIGTERM : order->signal;
    if (resize)
      report_.resized = true;
    else
      report_.stop_signal = signal;
    begin_stopping(resize ? "the nodes of the job change"
                          : fmt::format("{} on another node", processes::signal_name(signal)));
    // The job system signalled every launcher: ranks here are saving for it already, and another
    // signal would end them.
    if (signal == user_signal_) continue;
    peers_signal_ = signal;
    ask_to_end(resize ? SIGTERM : signal);
  }
}

// A person who pressed Ctrl-C needs the reason for the wait, and so does the reader of a batch
// job's log.
void Attempt::begin_stopping(const std::string& why) {
  logs_.end_open_lines();
  Log().info(fmt::format("{}: ranks have {:g} s to end (--shutdown-timeout){}", why,
                         seconds_of(spec_.stop_grace),
                         report_.stop_repeats_until ? "; once more ends them at once" : ""));
  phase_ = Phase::Stopping;
  fail_at_.reset();
  early_exit_report_at_.reset();
  kill_at_ = Clock::now() + spec_.stop_grace;
}

// Without a guard, processes that ranks started would outlive a launcher that is killed.
void Attempt::handle_guard() {
  const pid_t before = guard_.pid();
  if (!guard_.replace_if_gone()) return;
  descendants_.forget(before);
  descendants_.leave_alone(guard_.pid());
  logs_.end_open_lines();
  Log().warning(
      fmt::format("{} (process {}), which cleans up if convoy is killed, was killed itself; "
                  "process {} replaces it",
                  processes::kGuardName, before, guard_.pid()));
}

void Attempt::handle_health() {
  for (const HealthNotice& notice : health_.check(Clock::now())) {
    Log().warning(notice.sentence);
    if (!notice.fatal || phase_ != Phase::Running) continue;
    RankEnd end;
    end.rank = notice.rank;
    end.exit_code = kPeerLost;
    (notice.kind == HealthKind::Stuck ? end.stuck : end.silent) = true;
    end.sentence = notice.sentence;
    fail_while_it_runs(std::move(end));
  }
}

void Attempt::signal_all(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.running) processes::signal_group(rank.process.pid, signal);
}

// A stopped rank (SIGSTOP) gets no signal before it continues.
void Attempt::ask_to_end(int signal) {
  signal_all(signal);
  signal_all(SIGCONT);
}

std::vector<int> Attempt::running_ranks() const {
  std::vector<int> numbers;
  for (size_t local_rank = 0; local_rank < ranks_.size(); ++local_rank)
    if (ranks_[local_rank].running)
      numbers.push_back(spec_.job.first_rank + static_cast<int>(local_rank));
  return numbers;
}

void Attempt::kill_all(KilledFor reason) {
  // There is no warning after a failure: the report names ranks that did not end within the grace.
  if (reason != KilledFor::FailureGrace && any_running())
    Log().warning(fmt::format(
        "{} did not end {}; convoy kills the processes that still run: files that were being "
        "written, such as checkpoints, may be incomplete",
        rank_list(running_ranks()),
        reason == KilledFor::SecondStop
            ? "before the second request to stop"
            : fmt::format("within {:g} s (--shutdown-timeout)", seconds_of(spec_.stop_grace))));
  for (Rank& rank : ranks_)
    if (rank.running) rank.killed_for = reason;
  phase_ = Phase::Killing;
  fail_at_.reset();
  kill_at_.reset();
  give_up_at_ = Clock::now() + spec_.kill_wait;
  signal_all(SIGKILL);
}

void Attempt::handle_deadlines() {
  const auto now = Clock::now();
  if (early_exit_report_at_ && now >= *early_exit_report_at_) report_early_exit();
  if (fail_at_ && now >= *fail_at_) {
    report_.ended_early = std::all_of(
        report_.ends.begin(), report_.ends.end(),
        [](const RankEnd& end) { return end.exit_code == 0 || end.exit_code == kStopped; });
    if (report_.ended_early) note_failure(report_.ends.front());
    begin_failing(now);
  }
  if (kill_at_ && now >= *kill_at_) {
    const bool stopping = phase_ == Phase::Stopping;
    if (stopping) report_.killed_by_stop = !report_.resized;
    kill_all(stopping ? KilledFor::ShutdownTimeout : KilledFor::FailureGrace);
  }
  if (give_up_at_ && now >= *give_up_at_) give_up_on_unkillable();
}

}  // namespace convoy::launch
