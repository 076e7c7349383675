// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/coordinator.h"

#include <algorithm>
#include <memory>
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
#include "convoy/farm/sweep/runner/worker_command.h"
#include "convoy/farm/workers/worker.h"
#include "convoy/farm/workers/worker_supervisor.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::sweep {
namespace {

constexpr int kMostLosses = 20;  // times that kills from outside may lose one range

jobs::Failure failure_of(const workers::WorkerDeath& death, double timeout_seconds) {
  if (death.timed_out)
    return death.failure("timeout", fmt::format("no report for {} s", timeout_seconds));
  if (death.memory && death.signal == SIGKILL)
    return death.failure("memory", "the kernel killed the worker for its memory");
  if (death.signal == SIGKILL)
    return death.failure("lost", "the worker was killed again and again");
  return death.failure(death.signal != 0 ? "crash" : "exit", "the worker " + death.end_words());
}

class SweepRun : public workers::SupervisedWork {
 public:
  SweepRun(const SweepPlan& plan, const Workload& workload, const RunOptions& options)
      : options_(options),
        log_(options.log_folder, options.log_level),
        supervisor_(options.store, options.log),
        store_(supervisor_.store()) {
    if (jobs::on_network_file_system(options.store))
      warn(
          fmt::format("{} is on a network file system: use it from one host at a time, or use a "
                      "PostgreSQL store (--store postgresql://...)",
                      options.store));
    kill_leftovers();
    const std::string num_cells = counted(static_cast<int64_t>(plan.cells.size()), "cell");
    {
      const SlowNotice notice(options_.log,
                              fmt::format("putting {} into {}", num_cells, store_.name()));
      sweep_ = store_plan(store_, plan);
    }
    for (const std::string& version : sweep_.other_versions)
      inform(fmt::format(
          "results of version {} are in the store too; they are kept apart from those of {}",
          version, plan.version));
    for (const auto& [severity, text] : options.told) log_.write(severity, kRunner, text);
    workers::release_gone_owners(store_, sweep_.group_numbers());
    if (const int64_t again = retry_failed(store_, sweep_); again > 0)
      inform(fmt::format("trying again: {}", counted(again, "failed cell")));
    compute_lacking_again(plan);
    if (options.redo) {
      const int64_t again = redo_cells(store_, sweep_, options.redo);
      inform(again == 0 ? "no cell has a result to compute again"
                        : fmt::format("computing again: {}; results are kept until the "
                                      "new ones are there",
                                      counted(again, "cell")));
    }
    if (sweep_.reused > 0)
      inform(fmt::format("already computed in other sweeps: {}", counted(sweep_.reused, "cell")));
    report_.cells = static_cast<int64_t>(plan.cells.size());
    report_.added = sweep_.added;
    report_.reused = sweep_.reused;
    report_.ran = workers::any_open(store_, sweep_.group_numbers());
    if (!report_.ran) return;
    const std::vector<std::string> devices = wanted_devices(options);
    const int64_t workers = worker_count(options, devices);
    if (options.starts_programs) programs_ = std::make_unique<ProgramWatch>();
    supervision_.pool.environment = worker_environments(options, devices, workers);
    int64_t done = 0;
    for (const int64_t group : sweep_.group_numbers()) done += store_.counts(group).done;
    failing_start_ = FailingStart(done > 0);
    inform(start_text(plan, done, supervision_.pool.environment));
    if (programs_)
      for (auto& one : supervision_.pool.environment) one.merge(ProgramWatch::environment());
    supervision_.pool.command = worker_command(plan, workload, options, sweep_, workers);
    supervision_.pool.workers = workers;
    supervision_.pool.cpus = worker_cores(options, workers);
    supervision_.groups = sweep_.group_numbers();
    supervision_.divides_tasks =
        std::any_of(plan.cells.begin(), plan.cells.end(),
                    [](const PlannedCell& each) { return each.guesses > 0; });
    supervision_.lease = milliseconds_of(options.lease_seconds);
    supervision_.renews_leases = true;
    supervision_.max_attempts = static_cast<int>(options.max_attempts);
    const SlowNotice notice(options_.log,
                            fmt::format("reading the finished part of {}", num_cells));
    progress_ = std::make_unique<SweepProgress>(plan, workload, store_, sweep_, workers,
                                                options.color, options.log.level());
  }

  RunReport run() {
    if (report_.ran) {
      report_.stop_signal = supervisor_.run(supervision_, *this);
      if (programs_) programs_->kill_orphans({});
      settle();
      store_.sync();
      progress_->finish();
      log_.write(Severity::Info, kRunner, progress_->text());
    }
    for (const int64_t group : sweep_.group_numbers()) {
      const jobs::Counts counts = store_.counts(group);
      report_.done += counts.done;
      report_.failed += counts.failed;
    }
    report_.failed_alike = report_.failed_alike && !report_.finished();
    report_.sweep = sweep_;
    if (report_.ran) log_.write(Severity::Info, kRunner, end_text());
    return report_;
  }

 private:
  static constexpr const char* kRunner = "runner";

  void inform(const std::string& text) {
    options_.log.info(text);
    log_.write(Severity::Info, kRunner, text);
  }
  void warn(const std::string& text) override {
    if (progress_)
      SupervisedWork::warn(text);
    else
      options_.log.warning(text);
    log_.write(Severity::Warning, kRunner, text);
  }

  // "ssm-1a2b3c4d5e6f: 56 cells, 7.00G guesses; 2 workers on CPUs (AMD EPYC, 2 of 2 cores)".
  static std::string start_text(const SweepPlan& plan, int64_t done,
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

  std::string end_text() const {
    const std::string done = fmt::format("{} of {} done, {} failed", report_.done,
                                         counted(report_.cells, "cell"), report_.failed);
    if (report_.failed_alike) return "stopped since the first cells failed in one way: " + done;
    return report_.stop_signal == 0
               ? "ended: " + done
               : fmt::format("stopped by {}: {}", processes::signal_name(report_.stop_signal),
                             done);
  }

  void say(size_t worker, const std::string& text) override {
    SupervisedWork::say(worker, text);
    log_.write(Severity::Warning, author(worker), text);
  }
  void handle_error_line(size_t worker, const std::string& line) override {
    log_.write(Severity::Info, author(worker), "stderr: " + line);
  }
  static std::string author(size_t worker) { return fmt::format("worker {}", worker); }

  void compute_lacking_again(const SweepPlan& plan) {
    if (totals_of(plan.cells, {}).guesses == 0) return;
    if (const int64_t again = compute_again(store_, cells_lacking_guesses(store_, sweep_));
        again > 0)
      warn(fmt::format("computing again: {} of whose guesses an earlier version lost some",
                       counted(again, "cell")));
  }

  void kill_leftovers() {
    if (!options_.starts_programs) return;
    if (const int killed = ProgramWatch::kill_leftovers(); killed > 0)
      warn(
          fmt::format("a sweep was killed with all its workers: {} that it had started {} still "
                      "running, now ended",
                      counted(killed, "process", "processes"), killed == 1 ? "was" : "were"));
  }

  telemetry::Progress& bar() override { return progress_->bar(); }

  bool handle_line(size_t worker, const std::string& line) override {
    const std::optional<WorkerMessage> message = WorkerMessage::parse(line);
    if (!message) return false;
    const bool begins = message->kind == WorkerMessage::Kind::Begin;
    if (begins) computing_[worker] = message->leases;
    if (message->kind == WorkerMessage::Kind::Idle) computing_[worker].clear();
    tell(worker, *message);
    progress_->add(worker, *message);
    failing_start_.add(worker, *message, FailingStart::Clock::now());
    return begins;
  }

  workers::DeathConsequence consequence_of(const workers::WorkerDeath& death,
                                           const std::vector<jobs::Lease>& leases) override {
    any_died_ = true;
    const std::vector<int64_t> computing = std::exchange(computing_[death.worker], {});
    progress_->forget(death.worker);
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

  // A killed worker does not count against its range at first: a range fails only after many of its
  // workers were killed.
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
    // Workers end programs for their time themselves, and get some seconds more for that.
    const std::chrono::duration<double> limit(options_.timeout_seconds + options_.start_seconds +
                                              (programs_ ? 10 : 0));
    if (options_.timeout_seconds > 0)
      for (const size_t worker : pool.silent_for(limit))
        if (!computing_[worker].empty()) pool.kill(worker);
    progress_->show();
    if (log_.shows(Severity::Info) && progress_->log_line_is_due())
      log_.write(Severity::Info, kRunner, progress_->text());
  }

  // Cells of other runners may work.
  bool gives_up() override {
    if (options_.keep_going || !failing_start_.found()) return false;
    const std::vector<int64_t> groups = sweep_.group_numbers();
    report_.failed_alike = std::all_of(groups.begin(), groups.end(), [&](int64_t group) {
      return store_.counts(group).done == 0;
    });
    if (!report_.failed_alike) failing_start_ = FailingStart(true);
    return report_.failed_alike;
  }

  void each_second(int64_t released) override {
    if (released > 0) kill_leftovers();
  }

  void settle() override {
    for (const jobs::Group& group : sweep_.groups) finish_complete(store_, group.number);
    if (!has_stop_rules_) return;
    const std::vector<jobs::Lease> leases = all_leases(store_, sweep_);
    has_stop_rules_ = finish_stopped(store_, leases) || leases.empty();
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
        // Successive workers print the same one.
        if (told_warnings_.insert(message.text).second) say(worker, message.text);
        break;
      default:
        break;
    }
  }

  const RunOptions& options_;
  SweepLog log_;
  workers::WorkerSupervisor supervisor_;
  jobs::JobStore& store_;
  StoredSweep sweep_;
  workers::SupervisorOptions supervision_;
  std::unique_ptr<ProgramWatch> programs_;
  std::unique_ptr<SweepProgress> progress_;
  RunReport report_;
  FailingStart failing_start_{true};
  std::map<size_t, std::vector<int64_t>> computing_;  // leases, by worker
  std::set<std::string> told_warnings_;
  bool has_stop_rules_ = true;
  bool any_died_ = false;                              // since the last look
  std::map<std::pair<int64_t, int64_t>, int> losses_;  // to kills, by task and first unit
};

}  // namespace

RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options) {
  return SweepRun(plan, workload, options).run();
}

}  // namespace convoy::sweep
