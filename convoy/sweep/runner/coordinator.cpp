// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/coordinator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/base/error.h"
#include "convoy/base/usable_cpus.h"
#include "convoy/launch/descendants.h"
#include "convoy/launch/guard.h"
#include "convoy/launch/memory_kills.h"
#include "convoy/launch/scratch_folder.h"
#include "convoy/launch/signals.h"
#include "convoy/sweep/runner/sweep_progress.h"
#include "convoy/sweep/runner/worker.h"
#include "convoy/sweep/runner/worker_pool.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Environment = std::map<std::string, std::string>;

constexpr milliseconds kTurn{100};            // the longest between two looks at everything
constexpr milliseconds kFinishEvery{250};     // looks for finished cells in the store
constexpr milliseconds kReleaseEvery{1'000};  // looks for workers that ended with their runner
constexpr milliseconds kRenewEvery{15'000};
constexpr milliseconds kLease{60'000};
constexpr milliseconds kStopGrace{
    5'000};                      // what a worker computes when told to stop is short, or lost
constexpr int kIdleDeaths = 5;   // in a row, of workers that had begun nothing
constexpr int kMostLosses = 20;  // of one range to kills from outside
constexpr milliseconds kOrphanLimit{2'000};

// A worker that could not use the store says so in its last line, as every command does.
std::optional<Error> own_error(const WorkerDeath& death) {
  const size_t end = death.stderr_tail.find_last_not_of('\n');
  if (death.signal != 0 || end == std::string::npos) return std::nullopt;
  const size_t begin = death.stderr_tail.rfind('\n', end);
  const auto line = nlohmann::json::parse(
      death.stderr_tail.substr(begin == std::string::npos ? 0 : begin + 1, end), nullptr, false);
  if (!line.is_object() || line.value("code", 0) != death.exit_code) return std::nullopt;
  ErrorPlace place;
  if (line.contains("file") && line["file"].is_string()) place.file = line["file"];
  if (line.contains("hint") && line["hint"].is_string()) place.hint = line["hint"];
  return Error(static_cast<ExitCode>(death.exit_code), line.value("kind", "bug"),
               line.value("message", "a worker failed"), place);
}

std::vector<std::vector<int>> core_sets(int64_t cores_per_worker, int64_t workers) {
  std::vector<std::vector<int>> sets;
  if (cores_per_worker <= 0) return sets;
  const std::vector<int> cpus = allowed_cpus();
  for (int64_t worker = 0; worker < workers; ++worker) {
    sets.emplace_back();
    for (int64_t core = 0; core < cores_per_worker; ++core)
      sets.back().push_back(
          cpus[static_cast<size_t>(worker * cores_per_worker + core) % cpus.size()]);
  }
  return sets;
}

int64_t worker_count(const RunOptions& options) {
  if (options.workers > 0) return options.workers;
  return std::max<int64_t>(1, usable_cpus() / std::max<int64_t>(1, options.cores_per_worker));
}

// What a worker can do in a moment, before it knows its own speed.
int64_t first_range(const SweepPlan& plan, const Workload& workload) {
  constexpr double kSeconds = 0.3;
  constexpr size_t kAsked = 8;
  double slowest = 0;
  for (const PlannedCell& planned : plan.cells) {
    if (planned.guesses == 0) continue;
    const double rate = workload.guesses(planned.cell)->expected_rate();
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
    if (&planned - plan.cells.data() >= static_cast<std::ptrdiff_t>(kAsked)) break;
  }
  return std::max<int64_t>(1024, static_cast<int64_t>(kSeconds * slowest));
}

std::vector<std::string> worker_command(const SweepPlan& plan, const Workload& workload,
                                        const RunOptions& options, const StoredSweep& sweep,
                                        int64_t workers) {
  std::vector<std::string> command = options.worker_command;
  std::string groups, batches;
  for (size_t at = 0; at < sweep.groups.size(); ++at) {
    const int64_t cells =
        std::count_if(plan.cells.begin(), plan.cells.end(), [&](const PlannedCell& planned) {
          return planned.guesses == 0 && planned.cell.method == sweep.methods[at];
        });
    const int64_t batch =
        options.starts_programs ? 1 : std::clamp<int64_t>((cells + workers - 1) / workers, 1, 64);
    groups += fmt::format("{}{}", at == 0 ? "" : ",", sweep.groups[at].number);
    batches += fmt::format("{}{}", at == 0 ? "" : ",", batch);
  }
  for (const std::string& argument :
       {std::string("--store"), options.store, std::string("--workload"), plan.workload,
        std::string("--mode"), plan.mode, std::string("--groups"), groups,
        std::string("--cells-per-claim"), batches, std::string("--first-range"),
        std::to_string(first_range(plan, workload)), std::string("--max-attempts"),
        std::to_string(options.max_attempts), std::string("--timeout"),
        fmt::format("{}", options.timeout_seconds)})
    command.push_back(argument);
  if (options.log.level() == LogLevel::Verbose) command.push_back("--notes");
  return command;
}

// Keeps what workers' programs start from staying behind: of a worker that was killed, and of this process.
class ProgramWatch {
 public:
  ProgramWatch() : guard_(scratch_.path(), kMark + ("=" + worker_name(::getpid()))) {
    keeper_.leave_alone(guard_.pid());
  }

  void kill_orphans(const WorkerPool& pool) {
    for (const pid_t worker : pool.pids()) keeper_.leave_alone(worker);
    keeper_.kill_orphans(kOrphanLimit);
  }

  // Of everything that workers start.
  static Environment environment() { return {{kMark, worker_name(::getpid())}}; }

 private:
  static constexpr const char* kMark = "CONVOY_SWEEP_RUNNER";

  launch::ScratchFolder scratch_;
  launch::DescendantKeeper keeper_;
  launch::Guard guard_;
};

class Coordinator {
 public:
  Coordinator(const SweepPlan& plan, const Workload& workload, const RunOptions& options)
      : options_(options),
        signals_(launch::default_stop_signals()),
        store_(jobs::open_store(options.store)) {
    sweep_ = store_plan(*store_, plan);
    for (const std::string& version : sweep_.other_versions)
      options_.log.info(fmt::format(
          "results of version {} are in the store too; they are kept apart from those of {}",
          version, plan.version));
    release_gone_workers(*store_, sweep_);
    if (const int64_t again = retry_failed(*store_, sweep_); again > 0)
      options_.log.info(fmt::format("{} failed cells are tried again", again));
    if (sweep_.reused > 0)
      options_.log.info(fmt::format("{} cells are known from other sweeps", sweep_.reused));
    report_.cells = static_cast<int64_t>(plan.cells.size());
    report_.added = sweep_.added;
    report_.reused = sweep_.reused;
    const int64_t workers = worker_count(options);
    if (options.starts_programs) programs_ = std::make_unique<ProgramWatch>();
    pool_ = std::make_unique<WorkerPool>(
        PoolOptions{.command = worker_command(plan, workload, options, sweep_, workers),
                    .workers = workers,
                    .environment = programs_ ? ProgramWatch::environment() : Environment{},
                    .cpus = core_sets(options.cores_per_worker, workers),
                    .signals = signals_.mask_for_ranks(),
                    .log_folder = options.log_folder});
    progress_ =
        std::make_unique<SweepProgress>(plan, *store_, sweep_, options.color, options.log.level());
  }

  RunReport run() {
    while (!all_finished() && !stopping_) turn();
    end_workers();
    if (programs_) programs_->kill_orphans(*pool_);
    finish_cells();
    store_->sync();
    progress_->refresh();
    progress_->finish();
    count();
    return report_;
  }

 private:
  void turn() {
    pool_->start_missing(std::max<int64_t>(1, open_));
    listen(kTurn);
    while (const auto signal = signals_.next())
      if (launch::contains(launch::default_stop_signals(), *signal)) stop(*signal);
    const auto now = Clock::now();
    if (now >= next_finish_) {
      next_finish_ = now + kFinishEvery;
      finish_cells();
    }
    if (now >= next_release_) {
      next_release_ = now + kReleaseEvery;
      release_gone_workers(*store_, sweep_);
    }
    if (now >= next_renew_) {
      next_renew_ = now + kRenewEvery;
      renew();
    }
    if (options_.timeout_seconds > 0)
      for (const size_t worker : pool_->silent_for(std::chrono::duration<double>(silence_limit())))
        pool_->kill(worker);
    progress_->show();
  }

  // Workers end programs for their time themselves.
  double silence_limit() const {
    constexpr double kMore = 10;
    return options_.timeout_seconds + (programs_ ? kMore : 0);
  }

  void listen(milliseconds limit) {
    const PoolNews news = pool_->wait(limit, signals_.descriptor());
    for (const PoolNews::Message& one : news.messages) {
      if (one.message.kind == WorkerMessage::Kind::Note)
        progress_->message(fmt::format("[worker {}] {}", one.worker, one.message.text));
      progress_->add(one.message);
      if (one.message.kind == WorkerMessage::Kind::Begin) idle_deaths_ = 0;
    }
    if (options_.log.level() == LogLevel::Verbose)
      for (const PoolNews::Line& line : news.lines)
        progress_->message(fmt::format("[worker {}] {}", line.worker, line.text));
    for (const WorkerDeath& death : news.deaths) on_death(death);
    if (!news.deaths.empty() && programs_) programs_->kill_orphans(*pool_);
  }

  bool all_finished() {
    if (open_ >= 0 && Clock::now() < next_count_) return open_ == 0;
    next_count_ = Clock::now() + kFinishEvery;
    open_ = 0;
    for (const jobs::Group& group : sweep_.groups) open_ += store_->counts(group.number).open;
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
      if (!leases.empty()) store_->renew(leases, kLease);
    }
  }

  void on_death(const WorkerDeath& death) {
    // Asked once for every death: the counter is of all processes together.
    const bool memory = memory_.happened();
    const bool harmless = death.signal == 0 && death.exit_code == 0;
    if (!harmless) {
      if (const auto error = own_error(death)) throw *error;
    }
    std::vector<jobs::RangeFailure> failures;
    for (const jobs::Group& group : sweep_.groups)
      for (const jobs::Lease& lease : store_->leases(group.number)) {
        if (lease.worker != death.name || harmless) continue;
        const bool computing =
            std::find(death.leases.begin(), death.leases.end(), lease.number) != death.leases.end();
        if (computing && is_its_fault(death, memory, lease))
          failures.push_back({.lease = lease, .failure = failure_of(death, memory)});
      }
    if (!failures.empty()) {
      progress_->message(fmt::format("[worker {}] {}", death.worker, failures[0].failure.message));
      store_->fail(failures, static_cast<int>(options_.max_attempts));
    }
    store_->release(death.name);
    if (death.worked || harmless || death.signal == SIGKILL) return;
    if (++idle_deaths_ >= kIdleDeaths)
      throw StateError(fmt::format("{} workers in a row ended before they began anything: {}",
                                   idle_deaths_, failure_of(death, memory).message),
                       {.hint = death.stderr_tail});
  }

  // A worker that somebody kills is no fault of what it computed, up to a point.
  bool is_its_fault(const WorkerDeath& death, bool memory, const jobs::Lease& lease) {
    if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return false;
    if (death.signal != SIGKILL || death.timed_out || memory) return true;
    return ++losses_[{lease.task, lease.first}] >= kMostLosses;
  }

  jobs::Failure failure_of(const WorkerDeath& death, bool memory) const {
    jobs::Failure failure;
    failure.stderr_tail = death.stderr_tail;
    failure.signal = death.signal;
    failure.exit_code = death.signal == 0 ? death.exit_code : -1;
    if (death.timed_out) {
      failure.kind = "timeout";
      failure.message = fmt::format("no sign of life for {} s", options_.timeout_seconds);
    } else if (death.signal == SIGKILL) {
      failure.kind = memory ? "memory" : "lost";
      failure.message = memory ? "the kernel killed the worker for its memory"
                               : "the worker was killed again and again";
    } else if (death.signal != 0) {
      failure.kind = "crash";
      failure.message =
          fmt::format("the worker was ended by {}", launch::signal_name(death.signal));
    } else {
      failure.kind = "exit";
      failure.message = fmt::format("the worker ended with {}", death.exit_code);
    }
    return failure;
  }

  void stop(int signal) {
    if (stopping_) pool_->kill_all();
    stopping_ = true;
    report_.stop_signal = signal;
  }

  // They hand in what they have. What takes longer than the grace is lost, and computed again next time.
  void end_workers() {
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
  Clock::time_point next_finish_, next_release_, next_renew_, next_count_;
  int64_t open_ = -1;
  int idle_deaths_ = 0;
  bool has_stop_rules_ = true;
  bool stopping_ = false;
  std::map<std::pair<int64_t, int64_t>, int> losses_;  // of ranges to kills from outside
};

}  // namespace

RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options) {
  return Coordinator(plan, workload, options).run();
}

}  // namespace convoy::sweep
