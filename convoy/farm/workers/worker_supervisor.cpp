// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/workers/worker_supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/farm/workers/clock_watch.h"
#include "convoy/farm/workers/worker.h"
#include "convoy/machine/processes/memory_kills.h"
#include "convoy/machine/processes/process_name.h"

namespace convoy::workers {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTurn{100};        // longest time between two checks of everything
constexpr milliseconds kCountEvery{250};  // time between counts of open tasks
// Time between releases of leases whose owners are gone.
constexpr milliseconds kReleaseEvery{1'000};
constexpr milliseconds kPauseAfterIdleDeath{200};
constexpr std::chrono::seconds kSayWaitingEvery{60};
constexpr int kClocksPerLease = 8;  // checks of other hosts' clocks per lease

// True if a new worker would fail in the same way.
bool is_for_good(const Error& error) {
  return error.code() == ExitCode::Usage || error.code() == ExitCode::BadInput ||
         error.code() == ExitCode::NoCheckpoint || error.code() == ExitCode::Unreachable;
}

std::string worker_line(size_t worker, const std::string& text) {
  return fmt::format("[worker {}] {}", worker, text);
}

}  // namespace

void SupervisedWork::say(size_t worker, const std::string& text) {
  bar().message(worker_line(worker, text));
}

std::string WorkerDeath::end_text() const {
  return signal != 0 ? processes::signal_name(signal) : fmt::format("exit code {}", exit_code);
}

std::string WorkerDeath::end_words() const {
  return signal != 0 ? "was ended by " + processes::signal_name(signal)
                     : fmt::format("ended with {}", exit_code);
}

jobs::Failure WorkerDeath::failure(std::string kind, std::string message) const {
  return {.kind = std::move(kind),
          .message = std::move(message),
          .exit_code = signal == 0 ? exit_code : -1,
          .signal = signal,
          .stderr_tail = stderr_tail};
}

class WorkerSupervisor::Run {
 public:
  Run(WorkerSupervisor& supervisor, const SupervisorOptions& options, SupervisedWork& work)
      : supervisor_(supervisor),
        store_(supervisor.store()),
        options_(options),
        work_(work),
        pool_(options.pool),
        name_(processes::process_name(::getpid())),
        clocks_(name_, options.lease, [this] { return store_.tell_clock(name_); }) {}

  void go() {
    for (const auto& [name, clock] : store_.tell_clock(name_))
      if (processes::is_gone(name)) store_.forget_clock(name);
    while (!all_finished() && supervisor_.stop_signal_ == 0 && !work_.gives_up()) turn();
    end_workers();
    store_.forget_clock(name_);
  }

 private:
  bool all_finished() {
    if (Clock::now() < next_count_) return open_ == 0;
    next_count_ = Clock::now() + kCountEvery;
    work_.settle();
    open_ = 0;
    for (const int64_t group : options_.groups)
      open_ += store_.count_open(group, options_.pool.workers);
    return open_ == 0;
  }

  void turn() {
    if (Clock::now() >= next_start_)
      pool_.start_missing(options_.divides_tasks ? options_.pool.workers
                                                 : std::max<int64_t>(1, open_));
    listen();
    if (supervisor_.stop_signal_ == 0) supervisor_.stop_signal_ = supervisor_.next_stop_signal();
    for (const size_t worker : pool_.stopped_for(options_.lease / 4)) {
      work_.say(worker, "was stopped; another one replaces it");
      pool_.replace(worker);
    }
    if (Clock::now() >= next_release_) {
      next_release_ = Clock::now() + kReleaseEvery;
      work_.each_second(release_gone_owners(store_, options_.groups));
    }
    if (options_.renews_leases && Clock::now() >= next_renewal_) renew();
    if (Clock::now() >= next_clock_) {
      next_clock_ = Clock::now() + options_.lease / kClocksPerLease;
      for (const std::string& text : clocks_.look()) work_.warn(text);
    }
  }

  void renew() {
    next_renewal_ = Clock::now() + options_.lease / 4;
    const std::vector<std::string> names = pool_.names();
    std::vector<jobs::Lease> leases = leases_of({names.begin(), names.end()});
    if (!leases.empty()) store_.renew(leases, options_.lease);
  }

  std::vector<jobs::Lease> leases_of(const std::set<std::string>& owners) {
    std::vector<jobs::Lease> all;
    for (const int64_t group : options_.groups)
      for (jobs::Lease& lease : store_.leases(group))
        if (owners.contains(lease.owner)) all.push_back(std::move(lease));
    return all;
  }

  void listen() {
    processes::ProcessNews news = pool_.wait(kTurn, supervisor_.signals_.descriptor());
    for (const processes::ProcessNews::Line& line : news.output)
      if (work_.handle_line(line.worker, line.text)) {
        at_work_.insert(line.worker);
        idle_deaths_.erase(counted_with(line.worker));
      }
    for (const processes::ProcessNews::Line& line : news.errors) {
      work_.handle_error_line(line.worker, line.text);
      if (supervisor_.log_.level() == LogLevel::Verbose)
        work_.bar().message(worker_line(line.worker, line.text));
    }
    for (processes::ProcessDeath& death : news.deaths) on_death({std::move(death)});
    work_.look(pool_);
  }

  void on_death(WorkerDeath death) {
    death.worked = at_work_.erase(death.worker) > 0;
    // The counter is read once for every death, because it covers all processes together.
    death.memory = memory_.happened();
    death.told_to_end = ending_;
    const DeathConsequence consequence = work_.consequence_of(death, leases_of({death.name}));
    if (!consequence.failures.empty()) store_.fail(consequence.failures, options_.max_attempts);
    store_.release(death.name);
    next_count_ = {};
    // The message says that the work continues, so it is not sent if this death ends the run.
    const bool goes_on = !consequence.idle || ending_ || !any_open(store_, options_.groups) ||
                         note_idle_death(death);
    if (!consequence.message.empty()) work_.say(death.worker, consequence.message);
    if (!goes_on) work_.say(death.worker, "could not start; the others continue without it");
  }

  size_t counted_with(size_t worker) const {
    return options_.idle_deaths.of_each_worker ? worker : 0;
  }

  // Returns false if the worker is not started again. Throws if no other worker is left.
  bool note_idle_death(const WorkerDeath& death) {
    next_start_ = Clock::now() + kPauseAfterIdleDeath;
    const IdleDeathLimits& limits = options_.idle_deaths;
    const int in_a_row = ++idle_deaths_[counted_with(death.worker)];
    const std::optional<Error> error = processes::own_error(death);
    if (in_a_row < (death.signal == SIGKILL ? limits.kills : limits.deaths) &&
        !(error && is_for_good(*error)))
      return true;
    pool_.retire(death.worker);
    ++retired_;
    if (limits.of_each_worker && retired_ < options_.pool.workers) return false;
    if (error) throw *error;
    throw StateError(
        limits.of_each_worker
            ? fmt::format("no worker could be kept alive; the last ended by {}", death.end_text())
            : fmt::format("{} workers in a row ended before they began any work: the worker {}",
                          in_a_row, death.end_words()),
        {.hint = death.stderr_tail});
  }

  void end_workers() {
    ending_ = true;
    pool_.tell_stop();
    const auto limit = Clock::now() + options_.stop_grace;
    bool killed = false;
    while (pool_.running() > 0) {
      listen();
      if (supervisor_.next_stop_signal() == 0 && (killed || Clock::now() <= limit)) continue;
      killed = true;
      pool_.kill_all();
    }
  }

  WorkerSupervisor& supervisor_;
  jobs::JobStore& store_;
  const SupervisorOptions& options_;
  SupervisedWork& work_;
  processes::ProcessPool pool_;
  processes::MemoryKills memory_;
  std::set<size_t> at_work_;
  std::map<size_t, int> idle_deaths_;  // consecutive idle deaths, by counted_with()
  int64_t retired_ = 0;
  int64_t open_ = 0;  // number of open tasks, counted up to the number of workers per group
  bool ending_ = false;
  Clock::time_point next_start_, next_count_, next_release_, next_renewal_, next_clock_;
  std::string name_;
  ClockWatch clocks_;
};

WorkerSupervisor::WorkerSupervisor(const OpenStore& open, Log log, WaitingText waiting_text)
    : log_(std::move(log)),
      waiting_text_(std::move(waiting_text)),
      signals_(processes::default_stop_signals()) {
  store_ = open({.server_limit = kServerLimit,
                 .keep_waiting = [this](milliseconds left) { return keep_waiting(left); }});
}

WorkerSupervisor::WorkerSupervisor(const std::string& store, Log log, WaitingText waiting_text)
    : WorkerSupervisor([&](const auto& options) { return jobs::open_store(store, options); },
                       std::move(log), std::move(waiting_text)) {}

int WorkerSupervisor::run(SupervisorOptions options, SupervisedWork& work) {
  options.pool.signals = signals_.mask_for_ranks();
  Run(*this, options, work).go();
  return stop_signal_;
}

// Workers wait for the server too, and then hand in their results.
bool WorkerSupervisor::keep_waiting(milliseconds left) {
  if (Clock::now() >= next_warning_) {
    next_warning_ = Clock::now() + kSayWaitingEvery;
    log_.warning(waiting_text_
                     ? waiting_text_(left)
                     : fmt::format("{} cannot be reached; {}",
                                   store_ ? store_->name() : "the store", server_wait_text(left)));
  }
  if (stop_signal_ == 0) stop_signal_ = next_stop_signal();
  return stop_signal_ == 0;
}

int WorkerSupervisor::next_stop_signal() {
  while (const auto signal = signals_.next())
    if (processes::contains(processes::default_stop_signals(), *signal)) return *signal;
  return 0;
}

int64_t release_gone_owners(jobs::JobStore& store, std::span<const int64_t> groups) {
  std::set<std::string> owners;
  for (const int64_t group : groups)
    for (const jobs::Lease& lease : store.leases(group)) owners.insert(lease.owner);
  int64_t released = 0;
  for (const std::string& owner : owners)
    if (processes::is_gone(owner)) released += store.release(owner);
  return released;
}

}  // namespace convoy::workers
