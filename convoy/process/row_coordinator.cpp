// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/row_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "convoy/base/counted.h"
#include "convoy/base/error.h"
#include "convoy/launch/memory_kills.h"
#include "convoy/launch/process_name.h"
#include "convoy/launch/process_pool.h"
#include "convoy/launch/signals.h"
#include "convoy/telemetry/progress.h"

namespace convoy::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTurn{100};            // the longest between two looks at everything
constexpr milliseconds kCountOpenEvery{250};  // whether any row is open
constexpr milliseconds kShowEvery{1'000};
constexpr std::chrono::seconds kCountAllEvery{15};  // other hosts' rows count too
constexpr std::chrono::seconds kRateWindow{20};
constexpr std::chrono::seconds kSayWaitingEvery{60};
constexpr milliseconds kStopGrace{10'000};  // a step of the engine, and then it keeps what it has
// In a row, of a worker that kept no text meanwhile. One that somebody kills is likelier to live on.
constexpr int kMostIdleDeaths = 5;
constexpr int kMostIdleKills = 20;
constexpr milliseconds kPauseAfterIdleDeath{200};

RowWorkerFigures sum(RowWorkerFigures left, const RowWorkerFigures& right) {
  left.rows += right.rows;
  left.texts += right.texts;
  left.prompt_tokens += right.prompt_tokens;
  left.new_tokens += right.new_tokens;
  left.texts_read_back += right.texts_read_back;
  left.texts_lost += right.texts_lost;
  left.rows_given_up += right.rows_given_up;
  left.rows_held += right.rows_held;
  for (const auto& [stage, seconds] : right.seconds_by_stage)
    left.seconds_by_stage[stage] += seconds;
  return left;
}

std::string end_text(const launch::ProcessDeath& death) {
  return death.signal != 0 ? launch::signal_name(death.signal)
                           : fmt::format("exit code {}", death.exit_code);
}

// Nothing that a row did: the machine, the settings, or a person.
bool is_of_its_surroundings(const launch::ProcessDeath& death) {
  if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return true;
  const auto error = launch::own_error(death);
  if (!error) return false;
  for (const ExitCode code :
       {ExitCode::Usage, ExitCode::BadInput, ExitCode::NoCheckpoint, ExitCode::Resources,
        ExitCode::PeerLost, ExitCode::Device, ExitCode::Stopped})
    if (error->code() == code) return true;
  return false;
}

// Settings and files: the same worker would say the same again.
bool is_for_good(const launch::ProcessDeath& death) {
  const auto error = launch::own_error(death);
  return error && (error->code() == ExitCode::Usage || error->code() == ExitCode::BadInput ||
                   error->code() == ExitCode::NoCheckpoint);
}

class Coordinator {
 public:
  Coordinator(const RowCoordinatorOptions& options, const WorkerTask& task)
      : options_(options),
        task_(task),
        signals_(launch::default_stop_signals()),
        store_(jobs::open_store(
            task.store,
            {.server_limit = kServerLimit,
             .keep_waiting = [this](milliseconds left) { return keep_waiting(left); }})),
        slots_(static_cast<size_t>(options.workers)) {
    jobs::release_leases_of(*store_, task_.run.group, launch::is_gone);
    count_all();
    if (open_ == 0) return;
    launch::PoolOptions pool{.command = options.worker_command,
                             .workers = options.workers,
                             .environment = {},
                             .cpus = options.cpus,
                             .signals = signals_.mask_for_ranks(),
                             .log_folder = options.log_folder};
    for (size_t worker = 0; worker < slots_.size(); ++worker) {
      auto& environment = pool.environment.emplace_back(worker < options.environment.size()
                                                            ? options.environment[worker]
                                                            : std::map<std::string, std::string>());
      environment.merge(task.environment());
    }
    pool_ = std::make_unique<launch::ProcessPool>(std::move(pool));
    progress_ = std::make_unique<telemetry::Progress>(telemetry::ProgressOptions{
        .label = options.label,
        .unit = "row",
        .total = task.run.rows,
        .start = task.run.rows - open_,
        .style = options.log.level() == LogLevel::Quiet ? telemetry::ProgressStyle::None
                                                        : telemetry::ProgressStyle::Auto,
        .color = options.color});
  }

  RowCoordinatorReport run() {
    const auto begin = Clock::now();
    if (pool_) work();
    report_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (size_t worker = 0; worker < slots_.size(); ++worker) {
      report_.each[worker] = slots_[worker].total();
      report_.work = sum(report_.work, report_.each[worker]);
    }
    return report_;
  }

 private:
  // What is known of the workers that one place had, one after the other.
  struct Slot {
    WorkerSign last;         // of the one that runs
    RowWorkerFigures ended;  // of those before it
    int idle_deaths = 0;     // in a row
    bool retired = false;

    RowWorkerFigures total() const { return sum(ended, last.worker); }
  };

  void work() {
    while (!all_finished() && report_.stop_signal == 0) turn();
    end_workers();
    count_all();
    show();
    progress_->finish();
  }

  void note_stop() {
    while (const auto signal = signals_.next())
      if (launch::contains(launch::default_stop_signals(), *signal)) report_.stop_signal = *signal;
  }

  // A server that went away may come back; workers wait for it too, and then keep what they have.
  bool keep_waiting(milliseconds left) {
    if (Clock::now() >= next_say_waiting_) {
      next_say_waiting_ = Clock::now() + kSayWaitingEvery;
      options_.log.warning(
          fmt::format("the store can not be reached; waiting for it, {} s more at most",
                      std::chrono::duration_cast<std::chrono::seconds>(left).count()));
    }
    note_stop();
    return report_.stop_signal == 0;
  }

  void turn() {
    if (Clock::now() >= next_start_) pool_->start_missing(std::min(options_.workers, open_));
    listen();
    note_stop();
    for (const size_t worker : pool_->stopped_for(milliseconds(task_.lease_ms) / 4)) {
      progress_->message(fmt::format("[worker {}] was stopped; another takes its place", worker));
      pool_->replace(worker);
    }
    if (Clock::now() < next_show_) return;
    next_show_ = Clock::now() + kShowEvery;
    jobs::release_leases_of(*store_, task_.run.group, launch::is_gone);
    show();
    tell();
  }

  void listen() {
    const launch::ProcessNews news = pool_->wait(kTurn, signals_.descriptor());
    for (const launch::ProcessNews::Line& line : news.output) {
      const std::optional<WorkerSign> sign = WorkerSign::parse(line.text);
      if (!sign) continue;
      Slot& slot = slots_[line.worker];
      if (sign->worker.texts > 0 || sign->worker.rows > 0) slot.idle_deaths = 0;
      slot.last = *sign;
    }
    if (options_.log.level() == LogLevel::Verbose)
      for (const launch::ProcessNews::Line& line : news.errors)
        progress_->message(fmt::format("[worker {}] {}", line.worker, line.text));
    for (const launch::ProcessDeath& death : news.deaths) on_death(death);
  }

  void on_death(const launch::ProcessDeath& death) {
    Slot& slot = slots_[death.worker];
    slot.ended = slot.total();
    slot.ended.rows_held = 0;
    const WorkerSign last = std::exchange(slot.last, {});
    // Asked once for every death: the counter is of all processes together.
    const bool memory = memory_.happened();
    const bool asked_to_end = ending_ || (death.signal == 0 && death.exit_code == 0);
    if (!asked_to_end) {
      ++report_.deaths;
      progress_->message(fmt::format("[worker {}] ended by {}; what it had not kept is made again",
                                     death.worker, end_text(death)));
      blame(death, memory, last.worker.not_begun);
    }
    store_->release(death.name);
    next_count_open_ = {};
    const bool worked = last.worker.texts > 0 || last.worker.rows > 0;
    if (!worked && !ending_ && any_open()) on_idle_death(slot, death);
  }

  // Rows that a worker held when it went down may be why. Each is tried so often.
  void blame(const launch::ProcessDeath& death, bool memory,
             const std::vector<int64_t>& not_begun) {
    if (is_of_its_surroundings(death) || (death.signal == SIGKILL && !memory)) return;
    std::vector<jobs::RangeFailure> failures;
    for (const jobs::Lease& lease : store_->leases(task_.run.group)) {
      if (lease.worker != death.name ||
          std::find(not_begun.begin(), not_begun.end(), lease.task) != not_begun.end())
        continue;
      failures.push_back(
          {.lease = lease,
           .failure = {.kind = memory ? "memory" : "crash",
                       .message = fmt::format("{} workers went down with this row, the last by {}",
                                              options_.max_crashes, end_text(death)),
                       .exit_code = death.exit_code,
                       .signal = death.signal,
                       .stderr_tail = death.stderr_tail}});
    }
    if (!failures.empty()) store_->fail(failures, options_.max_crashes);
  }

  void on_idle_death(Slot& slot, const launch::ProcessDeath& death) {
    next_start_ = Clock::now() + kPauseAfterIdleDeath;
    ++slot.idle_deaths;
    if (!is_for_good(death) &&
        slot.idle_deaths < (death.signal == SIGKILL ? kMostIdleKills : kMostIdleDeaths))
      return;
    slot.retired = true;
    pool_->retire(death.worker);
    const bool any_left =
        std::any_of(slots_.begin(), slots_.end(), [](const Slot& one) { return !one.retired; });
    if (any_left) {
      progress_->message(
          fmt::format("[worker {}] could not begin; the others go on without it", death.worker));
      return;
    }
    if (const auto error = launch::own_error(death)) throw *error;
    throw StateError(
        fmt::format("no worker could be kept alive; the last ended by {}", end_text(death)),
        {.hint = death.stderr_tail});
  }

  bool any_open() { return store_->count_open(task_.run.group, 1) > 0; }

  bool all_finished() {
    if (Clock::now() < next_count_open_) return false;
    next_count_open_ = Clock::now() + kCountOpenEvery;
    return !any_open();
  }

  void count_all() {
    next_count_all_ = Clock::now() + kCountAllEvery;
    open_ = store_->counts(task_.run.group).open;
    rows_when_counted_ = all_work().rows;
  }

  RowWorkerFigures all_work() const {
    RowWorkerFigures all;
    for (const Slot& slot : slots_) all = sum(all, slot.total());
    return all;
  }

  void show() {
    if (Clock::now() >= next_count_all_) count_all();
    const RowWorkerFigures all = all_work();
    const int64_t open = std::max<int64_t>(0, open_ - (all.rows - rows_when_counted_));
    samples_.push_back({Clock::now(), all.new_tokens});
    while (samples_.size() > 2 && Clock::now() - samples_.front().when > kRateWindow)
      samples_.pop_front();
    const double seconds =
        std::chrono::duration<double>(samples_.back().when - samples_.front().when).count();
    const auto tokens = static_cast<double>(samples_.back().tokens - samples_.front().tokens);
    progress_->update({.done = task_.run.rows - open,
                       .per_second = seconds > 0 ? tokens / seconds : -1,
                       .extra = all.rows_held == 0
                                    ? std::string()
                                    : fmt::format("{} in flight", counted(all.rows_held, "row"))});
  }

  void tell() {
    if (!options_.tell) return;
    std::map<size_t, WorkerSign> signs;
    for (size_t worker = 0; worker < slots_.size(); ++worker) signs[worker] = slots_[worker].last;
    options_.tell(signs);
  }

  // They keep what they have. What takes longer than the grace is lost, and made again next time.
  void end_workers() {
    ending_ = true;
    pool_->tell_stop();
    const auto limit = Clock::now() + kStopGrace;
    bool killed = false;
    while (pool_->running() > 0) {
      listen();
      bool again = false;
      while (const auto signal = signals_.next())
        again = again || launch::contains(launch::default_stop_signals(), *signal);
      if (again || (!killed && Clock::now() > limit)) {
        killed = true;
        pool_->kill_all();
      }
    }
  }

  struct Sample {
    Clock::time_point when;
    int64_t tokens = 0;
  };

  const RowCoordinatorOptions& options_;
  const WorkerTask& task_;
  launch::SignalStream signals_;
  std::unique_ptr<jobs::JobStore> store_;
  launch::MemoryKills memory_;
  std::vector<Slot> slots_;
  std::unique_ptr<launch::ProcessPool> pool_;
  std::unique_ptr<telemetry::Progress> progress_;
  std::deque<Sample> samples_;
  RowCoordinatorReport report_;
  int64_t open_ = 0;               // rows, when last counted
  int64_t rows_when_counted_ = 0;  // finished here by then
  bool ending_ = false;
  Clock::time_point next_start_, next_show_, next_count_open_, next_count_all_, next_say_waiting_;
};

}  // namespace

RowCoordinatorReport run_rows(const RowCoordinatorOptions& options, const WorkerTask& task) {
  CONVOY_CHECK(options.workers > 0, ConfigError, "a run wants a worker at least, found {}",
               options.workers);
  return Coordinator(options, task).run();
}

}  // namespace convoy::process
