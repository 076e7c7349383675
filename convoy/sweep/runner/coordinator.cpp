// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/coordinator.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "convoy/base/counted.h"
#include "convoy/base/error.h"
#include "convoy/base/milliseconds.h"
#include "convoy/launch/memory_kills.h"
#include "convoy/launch/signals.h"
#include "convoy/sweep/runner/program_watch.h"
#include "convoy/sweep/runner/server_wait.h"
#include "convoy/sweep/runner/slow_notice.h"
#include "convoy/sweep/runner/sweep_progress.h"
#include "convoy/sweep/runner/worker.h"
#include "convoy/sweep/runner/worker_command.h"
#include "convoy/sweep/runner/worker_failure.h"
#include "convoy/sweep/runner/worker_pool.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Environment = std::map<std::string, std::string>;

constexpr milliseconds kTurn{100};            // the longest between two looks at everything
constexpr milliseconds kFinishEvery{250};     // looks for finished cells in the store
constexpr milliseconds kReleaseEvery{1'000};  // looks for workers that ended with their runner
constexpr std::chrono::seconds kSayWaitingEvery{60};
constexpr milliseconds kStopGrace{
    5'000};  // what a worker computes when told to stop is short, or lost
constexpr int64_t kMostWorkers = 4096;  // as the flag has it
constexpr int kIdleDeaths = 5;          // in a row, of workers that had begun nothing

class Coordinator {
 public:
  Coordinator(const SweepPlan& plan, const Workload& workload, const RunOptions& options)
      : options_(options),
        signals_(launch::default_stop_signals()),
        store_(jobs::open_store(options.store, {.server_limit = kServerLimit,
                                                .keep_waiting = [this](milliseconds left) {
                                                  return keep_waiting(left);
                                                }})) {
    if (jobs::on_network_file_system(options.store))
      options_.log.warning(fmt::format(
          "{} is on a network file system: let one host use it at a time, or several a PostgreSQL "
          "store (--store postgresql://...)",
          options.store));
    kill_leftovers();
    const std::string num_cells = counted(static_cast<int64_t>(plan.cells.size()), "cell");
    {
      const SlowNotice notice(options_.log,
                              fmt::format("putting {} into {}", num_cells, store_->name()));
      sweep_ = store_plan(*store_, plan);
    }
    for (const std::string& version : sweep_.other_versions)
      options_.log.info(fmt::format(
          "results of version {} are in the store too; they are kept apart from those of {}",
          version, plan.version));
    release_gone_workers(*store_, sweep_);
    if (const int64_t again = retry_failed(*store_, sweep_); again > 0)
      options_.log.info(fmt::format("trying again: {}", counted(again, "failed cell")));
    if (options.redo) say_redone(redo_cells(*store_, sweep_, options.redo));
    if (sweep_.reused > 0)
      options_.log.info(fmt::format("known from other sweeps: {}", counted(sweep_.reused, "cell")));
    report_.cells = static_cast<int64_t>(plan.cells.size());
    report_.added = sweep_.added;
    report_.reused = sweep_.reused;
    report_.ran = !all_finished();
    if (!report_.ran) return;
    spreads_ = std::any_of(plan.cells.begin(), plan.cells.end(),
                           [](const PlannedCell& each) { return each.guesses > 0; });
    const std::vector<std::string> devices = wanted_devices(options);
    const int64_t workers = worker_count(options, devices);
    if (options.starts_programs) programs_ = std::make_unique<ProgramWatch>();
    const std::vector<Environment> of_workers = environments(devices, workers);
    options_.log.info(workers_text(of_workers));
    pool_ = std::make_unique<WorkerPool>(
        launch::PoolOptions{.command = worker_command(plan, workload, options, sweep_, workers),
                            .workers = workers,
                            .environment = of_workers,
                            .cpus = worker_cores(options, workers),
                            .signals = signals_.mask_for_ranks(),
                            .log_folder = options.log_folder});
    const SlowNotice notice(options_.log, fmt::format("reading what is done of {}", num_cells));
    progress_ = std::make_unique<SweepProgress>(plan, workload, *store_, sweep_, options.color,
                                                options.log.level());
  }

  RunReport run() {
    if (pool_) work();
    count();
    report_.sweep = sweep_;
    return report_;
  }

 private:
  void work() {
    while (!all_finished() && !stopping_) turn();
    end_workers();
    if (programs_) programs_->kill_orphans(*pool_);
    finish_cells();
    store_->sync();
    progress_->finish();
  }

  void say_redone(int64_t cells) const {
    options_.log.info(cells == 0 ? std::string("no cell has a result to compute again")
                                 : fmt::format("computing again: {}; results are kept until the "
                                               "new ones are there",
                                               counted(cells, "cell")));
  }

  void kill_leftovers() {
    if (!options_.starts_programs) return;
    if (const int killed = ProgramWatch::kill_leftovers(); killed > 0)
      options_.log.warning(
          fmt::format("a sweep was killed with all its workers: {} that it had "
                      "started {} still there, and ended now",
                      counted(killed, "process", "processes"), killed == 1 ? "was" : "were"));
  }

  std::vector<Environment> environments(const std::vector<std::string>& devices,
                                        int64_t workers) const {
    std::vector<Environment> all = worker_environments(options_, devices, workers);
    if (programs_)
      for (Environment& one : all) one.merge(ProgramWatch::environment());
    return all;
  }

  milliseconds lease() const { return milliseconds_of(options_.lease_seconds); }

  // A server that went away may come back; workers wait for it too, and then hand in what they have.
  bool keep_waiting(milliseconds left) {
    if (Clock::now() - said_waiting_ > kSayWaitingEvery) {
      said_waiting_ = Clock::now();
      options_.log.warning(
          fmt::format("{} can not be reached; {}", store_->name(), server_wait_text(left)));
    }
    while (const auto signal = signals_.next())
      if (launch::contains(launch::default_stop_signals(), *signal)) report_.stop_signal = *signal;
    return report_.stop_signal == 0;
  }

  void turn() {
    pool_->start_missing(spreads_ ? std::numeric_limits<int64_t>::max()
                                  : std::max<int64_t>(1, open_));
    listen(kTurn);
    if (programs_) programs_->keep_guard();
    while (const auto signal = signals_.next())
      if (launch::contains(launch::default_stop_signals(), *signal)) stop(*signal);
    const auto now = Clock::now();
    if (now >= next_finish_) {
      next_finish_ = now + kFinishEvery;
      finish_cells();
    }
    if (now >= next_release_) {
      next_release_ = now + kReleaseEvery;
      if (release_gone_workers(*store_, sweep_) > 0) kill_leftovers();
    }
    if (now >= next_renew_) {
      next_renew_ = now + lease() / 4;
      renew();
    }
    for (const size_t worker : pool_->stopped_for(lease() / 4)) {
      progress_->message(fmt::format("[worker {}] was stopped; another takes its place", worker));
      pool_->replace(worker);
    }
    if (options_.timeout_seconds > 0)
      for (const size_t worker :
           pool_->silent_at_work(std::chrono::duration<double>(silence_limit())))
        pool_->kill(worker);
    progress_->show();
  }

  // Workers end programs for their time themselves.
  double silence_limit() const {
    constexpr double kMore = 10;
    return options_.timeout_seconds + options_.start_seconds + (programs_ ? kMore : 0);
  }

  void listen(milliseconds limit) {
    const PoolNews news = pool_->listen(limit, signals_.descriptor());
    for (const PoolNews::Message& one : news.messages) {
      if (one.message.kind == WorkerMessage::Kind::Note) tell_note(one.worker, one.message.text);
      progress_->add(one.worker, one.message);
      if (one.message.kind == WorkerMessage::Kind::Begin) idle_deaths_ = 0;
    }
    if (options_.log.level() == LogLevel::Verbose)
      for (const launch::ProcessNews::Line& line : news.lines)
        progress_->message(fmt::format("[worker {}] {}", line.worker, line.text));
    for (const WorkerDeath& death : news.deaths) {
      on_death(death);
      progress_->forget(death.worker);
    }
    if (!news.deaths.empty() && programs_) programs_->kill_orphans(*pool_);
  }

  // Workers that come one after another have the same to say.
  void tell_note(size_t worker, const std::string& text) {
    if (options_.log.level() == LogLevel::Verbose || told_notes_.insert(text).second)
      progress_->message(fmt::format("[worker {}] {}", worker, text));
  }

  bool all_finished() {
    if (open_ >= 0 && Clock::now() < next_count_) return open_ == 0;
    next_count_ = Clock::now() + kFinishEvery;
    open_ = 0;
    // As many as there may be workers for.
    const int64_t most = std::max(kMostWorkers, options_.workers);
    for (const jobs::Group& group : sweep_.groups) open_ += store_->count_open(group.number, most);
    return open_ == 0;
  }

  void finish_cells() {
    for (const jobs::Group& group : sweep_.groups) finish_complete(*store_, group.number);
    if (has_stop_rules_) has_stop_rules_ = finish_by_rule();
  }

  // Of the cells that somebody is at work on. False when no open cell has a rule.
  bool finish_by_rule() {
    bool any_rule = false;
    std::vector<jobs::TaskRecord> begun;
    std::set<int64_t> seen;
    for (const jobs::Group& group : sweep_.groups)
      for (const jobs::Lease& lease : store_->leases(group.number)) {
        any_rule = any_rule || PlannedCell::parse(lease.parameters).stop.any();
        if (!seen.insert(lease.task).second) continue;
        jobs::TaskRecord task;
        task.number = lease.task;
        task.parameters = lease.parameters;
        begun.push_back(std::move(task));
      }
    finish_stopped(*store_, begun);
    return any_rule || begun.empty();
  }

  void renew() {
    const std::vector<std::string> names = pool_->names();
    for (const jobs::Group& group : sweep_.groups) {
      std::vector<jobs::Lease> leases = store_->leases(group.number);
      std::erase_if(leases, [&](const jobs::Lease& lease) {
        return std::find(names.begin(), names.end(), lease.worker) == names.end();
      });
      if (!leases.empty()) store_->renew(leases, lease());
    }
  }

  void on_death(const WorkerDeath& death) {
    // Asked once for every death: the counter is of all processes together.
    const bool memory = memory_.happened();
    const bool harmless = death.signal == 0 && death.exit_code == 0;
    if (!harmless) {
      if (const auto error = launch::own_error(death)) throw *error;
    }
    std::vector<jobs::RangeFailure> failures;
    for (const jobs::Group& group : sweep_.groups)
      for (const jobs::Lease& lease : store_->leases(group.number)) {
        if (lease.worker != death.name || harmless) continue;
        const bool computing =
            std::find(death.leases.begin(), death.leases.end(), lease.number) != death.leases.end();
        if (computing && blame_.is_its_fault(death, memory, lease))
          failures.push_back(
              {.lease = lease, .failure = failure_of(death, memory, options_.timeout_seconds)});
      }
    if (!failures.empty()) {
      progress_->message(fmt::format("[worker {}] {}", death.worker, failures[0].failure.message));
      store_->fail(failures, static_cast<int>(options_.max_attempts));
    } else if (!harmless && !ending_) {
      progress_->message(fmt::format(
          "[worker {}] ended by {}; what it had not handed in is computed again", death.worker,
          death.signal != 0 ? launch::signal_name(death.signal)
                            : fmt::format("exit code {}", death.exit_code)));
    }
    store_->release(death.name);
    if (death.worked || harmless || death.signal == SIGKILL) return;
    if (++idle_deaths_ >= kIdleDeaths)
      throw StateError(
          fmt::format("{} workers in a row ended before they began anything: {}", idle_deaths_,
                      failure_of(death, memory, options_.timeout_seconds).message),
          {.hint = death.stderr_tail});
  }

  void stop(int signal) {
    if (stopping_) pool_->kill_all();
    stopping_ = true;
    report_.stop_signal = signal;
  }

  // They hand in what they have. What takes longer than the grace is lost, and computed again next time.
  void end_workers() {
    ending_ = true;
    pool_->tell_stop();
    const auto limit = Clock::now() + kStopGrace;
    bool killed = false;
    while (pool_->running() > 0) {
      listen(kTurn);
      if (stopping_)
        while (signals_.next()) pool_->kill_all();
      if (!killed && Clock::now() > limit) {
        killed = true;
        pool_->kill_all();
      }
    }
  }

  void count() {
    report_.done = report_.failed = 0;
    for (const jobs::Group& group : sweep_.groups) {
      const jobs::Counts counts = store_->counts(group.number);
      report_.done += counts.done;
      report_.failed += counts.failed;
    }
  }

  const RunOptions& options_;
  launch::SignalStream signals_;
  std::unique_ptr<jobs::JobStore> store_;
  StoredSweep sweep_;
  launch::MemoryKills memory_;
  std::unique_ptr<ProgramWatch> programs_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<SweepProgress> progress_;
  RunReport report_;
  std::set<std::string> told_notes_;
  Clock::time_point said_waiting_;
  Clock::time_point next_finish_, next_release_, next_renew_, next_count_;
  int64_t open_ = -1;
  bool spreads_ = false;  // a cell of guesses has work for any number of workers
  int idle_deaths_ = 0;
  bool has_stop_rules_ = true;
  bool ending_ = false;  // nothing is computed any more
  bool stopping_ = false;
  BlameForDeaths blame_;
};

}  // namespace

RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options) {
  return Coordinator(plan, workload, options).run();
}

}  // namespace convoy::sweep
