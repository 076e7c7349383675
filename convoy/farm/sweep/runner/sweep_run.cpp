// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_run.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/failing_start.h"
#include "convoy/farm/sweep/runner/plan_cost.h"
#include "convoy/farm/sweep/runner/program_watch.h"
#include "convoy/farm/sweep/runner/slow_notice.h"
#include "convoy/farm/sweep/runner/sweep_progress.h"
#include "convoy/farm/sweep/runner/worker_start.h"
#include "convoy/farm/workers/worker.h"
#include "convoy/farm/workers/worker_supervisor.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {
namespace {

constexpr int kMostLosses = 20;  // a range fails after this many kills from outside

jobs::Failure failure_of(const workers::WorkerDeath& death, double timeout_seconds) {
  if (death.timed_out)
    return death.failure("timeout", fmt::format("no report for {} s", timeout_seconds));
  if (death.memory && death.signal == SIGKILL)
    return death.failure("memory", "the kernel killed the worker for its memory");
  if (death.signal == SIGKILL)
    return death.failure("lost", "the worker was killed again and again");
  return death.failure(death.signal != 0 ? "crash" : "exit", "the worker " + death.end_words());
}

constexpr const char* kRunner = "runner";

// Writes the same messages to the terminal and to sweep.log.
class RunnerLog {
 public:
  explicit RunnerLog(const RunOptions& options)
      : terminal_(options.log), file_(options.log_folder, options.log_level) {}

  void inform(const std::string& text) {
    terminal_.info(text);
    file_.write(Severity::Info, kRunner, text);
  }
  void warn(const std::string& text) {
    terminal_.warning(text);
    file_.write(Severity::Warning, kRunner, text);
  }
  SweepLog& file() { return file_; }

 private:
  const Log& terminal_;
  SweepLog file_;
};

std::string leftovers_text(int killed) {
  return fmt::format(
      "a sweep was killed with all its workers: {} that it had started {} still running, now ended",
      counted(killed, "process", "processes"), killed == 1 ? "was" : "were");
}

void tell_places(const RunOptions& options, RunnerLog& log) {
  if (jobs::on_network_file_system(options.store))
    log.warn(
        fmt::format("{} is on a network file system: use it from one host at a time, or use a "
                    "PostgreSQL store (--store postgresql://...)",
                    options.store));
  if (!options.starts_programs) return;
  if (const int killed = ProgramWatch::kill_leftovers(); killed > 0)
    log.warn(leftovers_text(killed));
}

StoredSweep stored_plan(jobs::JobStore& store, const SweepPlan& plan, const RunOptions& options,
                        RunnerLog& log) {
  const SlowNotice notice(
      options.log,
      fmt::format("putting {} into {}", counted(static_cast<int64_t>(plan.cells.size()), "cell"),
                  store.name()));
  StoredSweep sweep = store_plan(store, plan);
  for (const std::string& version : sweep.other_versions)
    log.inform(
        fmt::format("results of version {} are in the store too; they are kept apart from those "
                    "of {}",
                    version, plan.version));
  for (const auto& [severity, text] : options.told) log.file().write(severity, kRunner, text);
  return sweep;
}

// Opens cells again: failed cells, cells that lack guesses, and cells that the user wants to
// compute again.
void reopen_cells(jobs::JobStore& store, const SweepPlan& plan, const StoredSweep& sweep,
                  const RunOptions& options, RunnerLog& log) {
  workers::release_gone_owners(store, sweep.group_numbers());
  if (const int64_t again = retry_failed(store, sweep); again > 0)
    log.inform(fmt::format("trying again: {}", counted(again, "failed cell")));
  if (totals_of(plan.cells, {}).guesses > 0)
    if (const int64_t again = compute_again(store, cells_lacking_guesses(store, sweep)); again > 0)
      log.warn(fmt::format("computing again: {} of whose guesses an earlier version lost some",
                           counted(again, "cell")));
  if (!options.redo) return;
  const int64_t again = redo_cells(store, sweep, options.redo);
  log.inform(again == 0 ? "no cell has a result to compute again"
                        : fmt::format("computing again: {}; results are kept until the new ones "
                                      "are there",
                                      counted(again, "cell")));
}

// The first message of a run: "ssm-1a2b3c4d5e6f: 56 cells, 7.00G guesses; 2 workers on CPUs (AMD
// EPYC, 2 of 2 cores)".
std::string start_text(const SweepPlan& plan, int64_t done,
                       const std::vector<std::map<std::string, std::string>>& workers) {
  const PlanTotals totals = totals_of(plan.cells, {});
  std::string guesses;
  if (totals.guesses > 0)
    guesses =
        fmt::format(", {} guesses", telemetry::count_text(static_cast<double>(totals.guesses)));
  const std::string finished = done > 0 ? fmt::format(", {} of them done", done) : "";
  return fmt::format("{}: {}{}{}; {} ({})", plan.name(),
                     counted(static_cast<int64_t>(plan.cells.size()), "cell"), finished, guesses,
                     workers_text(workers), device_name());
}

workers::SupervisorOptions supervision_of(const SweepPlan& plan, const Workload& workload,
                                          const StoredSweep& sweep, const RunOptions& options) {
  const std::vector<std::string> devices = wanted_devices(options);
  const int64_t workers = worker_count(options, devices);
  workers::SupervisorOptions supervision;
  supervision.pool.environment = worker_environments(options, devices, workers);
  supervision.pool.command = worker_command(plan, workload, options, sweep, workers);
  supervision.pool.workers = workers;
  supervision.pool.cpus = worker_cores(options, workers);
  supervision.groups = sweep.group_numbers();
  supervision.divides_tasks = std::any_of(plan.cells.begin(), plan.cells.end(),
                                          [](const PlannedCell& each) { return each.guesses > 0; });
  supervision.lease = milliseconds_of(options.lease_seconds);
  supervision.renews_leases = true;
  supervision.max_attempts = static_cast<int>(options.max_attempts);
  return supervision;
}

jobs::Counts counts_of(jobs::JobStore& store, const StoredSweep& sweep) {
  jobs::Counts counts;
  for (const int64_t group : sweep.group_numbers()) {
    const jobs::Counts one = store.counts(group);
    counts.done += one.done;
    counts.failed += one.failed;
  }
  return counts;
}

std::string end_text(const RunReport& report) {
  const std::string done = fmt::format("{} of {} done, {} failed", report.done,
                                       counted(report.cells, "cell"), report.failed);
  if (report.failed_alike) return "stopped since the first cells failed in one way: " + done;
  if (report.stop_signal == 0) return "ended: " + done;
  return fmt::format("stopped by {}: {}", processes::signal_name(report.stop_signal), done);
}

// Supervises the workers of a sweep with open cells.
class SweepRun : public workers::SupervisedWork {
 public:
  // `programs`: null if workers start no programs. `num_done`: cells that have a result.
  SweepRun(const RunOptions& options, SweepLog& log, jobs::JobStore& store,
           const StoredSweep& sweep, ProgramWatch* programs, SweepProgress& progress,
           int64_t num_done)
      : options_(options),
        log_(log),
        store_(store),
        sweep_(sweep),
        programs_(programs),
        progress_(progress),
        failing_start_(num_done > 0) {}

  void settle() override {
    for (const jobs::Group& group : sweep_.groups) finish_complete(store_, group.number);
    if (!has_stop_rules_) return;
    const std::vector<jobs::Lease> leases = all_leases(store_, sweep_);
    has_stop_rules_ = finish_stopped(store_, leases) || leases.empty();
  }

  // True if the sweep was stopped because its first cells all failed in the same way.
  bool failed_alike() const { return failed_alike_; }

 private:
  void warn(const std::string& text) override {
    SupervisedWork::warn(text);
    log_.write(Severity::Warning, kRunner, text);
  }
  void say(size_t worker, const std::string& text) override {
    SupervisedWork::say(worker, text);
    log_.write(Severity::Warning, author(worker), text);
  }
  void handle_error_line(size_t worker, const std::string& line) override {
    log_.write(Severity::Info, author(worker), "stderr: " + line);
  }
  static std::string author(size_t worker) { return fmt::format("worker {}", worker); }

  telemetry::Progress& bar() override { return progress_.bar(); }

  bool handle_line(size_t worker, const std::string& line) override {
    const std::optional<WorkerMessage> message = WorkerMessage::parse(line);
    if (!message) return false;
    const bool begins = message->kind == WorkerMessage::Kind::Begin;
    if (begins) computing_[worker] = message->leases;
    if (message->kind == WorkerMessage::Kind::Idle) computing_[worker].clear();
    tell(worker, *message);
    progress_.add(worker, *message);
    failing_start_.add(worker, *message, FailingStart::Clock::now());
    return begins;
  }

  workers::DeathConsequence consequence_of(const workers::WorkerDeath& death,
                                           const std::vector<jobs::Lease>& leases) override {
    any_died_ = true;
    const std::vector<int64_t> computing = std::exchange(computing_[death.worker], {});
    progress_.forget(death.worker);
    failing_start_.forget(death.worker);
    if (death.ended_well()) return {};
    if (const auto error = own_error(death)) throw *error;
    workers::DeathConsequence consequence;
    consequence.idle = !death.worked && death.signal != SIGKILL;
    for (const jobs::Lease& lease : leases)
      if (std::find(computing.begin(), computing.end(), lease.number) != computing.end() &&
          is_its_fault(death, lease))
        consequence.failures.push_back(
            {.lease = lease, .failure = failure_of(death, options_.timeout_seconds)});
    if (!consequence.failures.empty()) {
      consequence.message = consequence.failures[0].failure.message;
    } else if (!death.told_to_end) {
      consequence.message =
          fmt::format("ended by {}; its unfinished work is computed again", death.end_text());
    }
    return consequence;
  }

  // A killed worker does not count against its range at first. The range fails only after many of
  // its workers were killed.
  bool is_its_fault(const workers::WorkerDeath& death, const jobs::Lease& lease) {
    if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return false;
    if (death.signal != SIGKILL || death.timed_out || death.memory) return true;
    return ++losses_[{lease.task, lease.first}] >= kMostLosses;
  }

  void look(processes::ProcessPool& pool) override {
    if (programs_) {
      if (std::exchange(any_died_, false)) programs_->kill_orphans(pool.pids());
      programs_->keep_guard();
    }
    // Workers themselves end programs at the time limit, so they get some seconds more.
    const std::chrono::duration<double> limit(options_.timeout_seconds + options_.start_seconds +
                                              (programs_ ? 10 : 0));
    if (options_.timeout_seconds > 0)
      for (const size_t worker : pool.silent_for(limit))
        if (!computing_[worker].empty()) pool.kill(worker);
    progress_.show();
    if (log_.shows(Severity::Info) && progress_.log_line_is_due())
      log_.write(Severity::Info, kRunner, progress_.text());
  }

  // Does not give up if another runner has a result: then some cells work.
  bool gives_up() override {
    if (options_.keep_going || !failing_start_.found()) return false;
    const std::vector<int64_t> groups = sweep_.group_numbers();
    failed_alike_ = std::all_of(groups.begin(), groups.end(),
                                [&](int64_t group) { return store_.counts(group).done == 0; });
    if (!failed_alike_) failing_start_ = FailingStart(true);
    return failed_alike_;
  }

  void each_second(int64_t released) override {
    if (released == 0 || programs_ == nullptr) return;
    if (const int killed = ProgramWatch::kill_leftovers(); killed > 0) warn(leftovers_text(killed));
  }

  void tell(size_t worker, const WorkerMessage& message) {
    const bool verbose = options_.log.level() == LogLevel::Verbose;
    switch (message.kind) {
      case WorkerMessage::Kind::Note:
        if (verbose) SupervisedWork::say(worker, message.text);
        log_.write(Severity::Debug, author(worker), message.text);
        break;
      case WorkerMessage::Kind::Failure:
        if (verbose) SupervisedWork::say(worker, message.text);
        log_.write(Severity::Error, author(worker), message.text);
        break;
      case WorkerMessage::Kind::Warning:
        // Successive workers send the same warning, which is shown once.
        if (told_warnings_.insert(message.text).second) say(worker, message.text);
        break;
      default:
        break;
    }
  }

  const RunOptions& options_;
  SweepLog& log_;
  jobs::JobStore& store_;
  const StoredSweep& sweep_;
  ProgramWatch* const programs_;
  SweepProgress& progress_;
  FailingStart failing_start_;
  bool failed_alike_ = false;
  std::map<size_t, std::vector<int64_t>> computing_;  // leases in work, by worker
  std::set<std::string> told_warnings_;
  bool has_stop_rules_ = true;
  bool any_died_ = false;                              // a worker died since the last look
  std::map<std::pair<int64_t, int64_t>, int> losses_;  // number of kills, by task and first unit
};

// Runs workers until every cell is finished, the user stops the sweep, or the sweep gives up.
void run_workers(const SweepPlan& plan, const Workload& workload, const RunOptions& options,
                 const StoredSweep& sweep, workers::WorkerSupervisor& supervisor, RunnerLog& log,
                 RunReport& report) {
  jobs::JobStore& store = supervisor.store();
  std::optional<ProgramWatch> programs;
  if (options.starts_programs) programs.emplace();
  workers::SupervisorOptions supervision = supervision_of(plan, workload, sweep, options);
  const int64_t num_done = counts_of(store, sweep).done;
  log.inform(start_text(plan, num_done, supervision.pool.environment));
  if (programs)
    for (auto& one : supervision.pool.environment) one.merge(ProgramWatch::environment());
  std::optional<SweepProgress> progress;
  {
    const SlowNotice notice(options.log,
                            fmt::format("reading the finished part of {}",
                                        counted(static_cast<int64_t>(plan.cells.size()), "cell")));
    progress.emplace(plan, workload, store, sweep, supervision.pool.workers, options.color,
                     options.log.level());
  }
  SweepRun run(options, log.file(), store, sweep, programs ? &*programs : nullptr, *progress,
               num_done);
  report.stop_signal = supervisor.run(supervision, run);
  if (programs) programs->kill_orphans({});
  run.settle();
  report.failed_alike = run.failed_alike();
  store.sync();
  progress->finish();
  log.file().write(Severity::Info, kRunner, progress->text());
}

}  // namespace

RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options) {
  RunnerLog log(options);
  workers::WorkerSupervisor supervisor(options.store, options.log);
  jobs::JobStore& store = supervisor.store();
  tell_places(options, log);
  const StoredSweep sweep = stored_plan(store, plan, options, log);
  reopen_cells(store, plan, sweep, options, log);
  if (sweep.reused > 0)
    log.inform(fmt::format("already computed in other sweeps: {}", counted(sweep.reused, "cell")));
  RunReport report{.cells = static_cast<int64_t>(plan.cells.size()),
                   .added = sweep.added,
                   .reused = sweep.reused,
                   .ran = workers::any_open(store, sweep.group_numbers()),
                   .sweep = sweep};
  if (report.ran) run_workers(plan, workload, options, sweep, supervisor, log, report);
  const jobs::Counts counts = counts_of(store, sweep);
  report.done = counts.done;
  report.failed = counts.failed;
  report.failed_alike = report.failed_alike && !report.finished();
  if (report.ran) log.file().write(Severity::Info, kRunner, end_text(report));
  return report;
}

}  // namespace convoy::sweep
