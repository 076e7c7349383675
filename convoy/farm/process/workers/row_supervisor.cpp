// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/row_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/workers/worker_supervisor.h"

namespace convoy::process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using workers::WorkerDeath;

constexpr std::chrono::seconds kCountAllEvery{15};  // rows of other hosts count too
constexpr std::chrono::seconds kRateWindow{20};

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

// True if no row caused the death, but the machine, the settings, or a person.
bool is_of_its_surroundings(const WorkerDeath& death) {
  if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return true;
  const auto error = own_error(death);
  if (!error) return false;
  for (const ExitCode code :
       {ExitCode::Usage, ExitCode::BadInput, ExitCode::NoCheckpoint, ExitCode::Resources,
        ExitCode::PeerLost, ExitCode::Device, ExitCode::Unreachable, ExitCode::Stopped})
    if (error->code() == code) return true;
  return false;
}

// True if the next worker would end in the same way, such as by a server that refuses the account.
bool is_of_the_settings(const WorkerDeath& death) {
  const auto error = own_error(death);
  return error && error->code() == ExitCode::Usage;
}

std::string waiting_text(milliseconds left) {
  return fmt::format("the store cannot be reached; waiting for it, {} s more at most",
                     std::chrono::duration_cast<std::chrono::seconds>(left).count());
}

class RowsRun : public workers::SupervisedWork {
 public:
  RowsRun(const RowSupervisorOptions& options, const WorkerAssignment& task)
      : options_(options),
        task_(task),
        supervisor_(task.store, options.log, waiting_text),
        slots_(static_cast<size_t>(options.workers)) {
    workers::release_gone_owners(supervisor_.store(), {&task.run.group, 1});
    count_all();
  }

  RowSupervisorReport run() {
    const auto begin = Clock::now();
    if (open_ > 0) work();
    report_.seconds = seconds_since(begin);
    for (size_t worker = 0; worker < slots_.size(); ++worker) {
      report_.each[worker] = slots_[worker].total();
      report_.work = sum(report_.work, report_.each[worker]);
    }
    return report_;
  }

 private:
  // Facts about the successive workers of one slot.
  struct Slot {
    WorkerStatus last;       // status of the running worker
    RowWorkerFigures ended;  // sums over earlier workers

    RowWorkerFigures total() const { return sum(ended, last.worker); }
  };

  void work() {
    progress_.emplace(telemetry::ProgressOptions{.label = options_.label,
                                                 .unit = "row",
                                                 .total = task_.run.rows,
                                                 .start = task_.run.rows - open_,
                                                 .style = options_.log.level() == LogLevel::Quiet
                                                              ? telemetry::ProgressStyle::None
                                                              : telemetry::ProgressStyle::Auto,
                                                 .color = options_.color});
    workers::SupervisorOptions supervision;
    supervision.pool.command = options_.worker_command;
    supervision.pool.workers = options_.workers;
    supervision.pool.cpus = options_.cpus;
    supervision.pool.log_folder = options_.log_folder;
    supervision.pool.environment = options_.environment;
    supervision.pool.environment.resize(slots_.size());
    for (auto& environment : supervision.pool.environment) environment.merge(task_.environment());
    supervision.groups = {task_.run.group};
    supervision.lease = milliseconds(task_.lease_ms);
    // Time for a step of the engine, after which the worker keeps all texts.
    supervision.stop_grace = milliseconds(10'000);
    supervision.max_attempts = options_.max_crashes;
    // A worker that was killed is more likely to survive its next start than a worker that crashed.
    supervision.idle_deaths = {.deaths = 5, .kills = 20, .of_each_worker = true};
    report_.stop_signal = supervisor_.run(supervision, *this);
    count_all();
    show();
    progress_->finish();
  }

  telemetry::Progress& bar() override { return *progress_; }

  bool handle_line(size_t worker, const std::string& line) override {
    if (const auto note = parse_note(line))
      progress_->message(fmt::format("[worker {}] {}", worker, *note));
    const std::optional<WorkerStatus> status = WorkerStatus::parse(line);
    if (!status) return false;
    slots_[worker].last = *status;
    return status->worker.texts > 0 || status->worker.rows > 0;
  }

  workers::DeathConsequence consequence_of(const WorkerDeath& death,
                                           const std::vector<jobs::Lease>& leases) override {
    Slot& slot = slots_[death.worker];
    slot.ended = slot.total();
    slot.ended.rows_held = 0;
    const WorkerStatus last = std::exchange(slot.last, {});
    workers::DeathConsequence consequence{.idle = !death.worked || is_of_the_settings(death)};
    if (death.told_to_end || death.ended_well()) return consequence;
    ++report_.deaths;
    if (!is_of_the_settings(death))
      consequence.message =
          fmt::format("ended by {}; its unsaved texts are generated again", death.end_text());
    consequence.failures = failures(death, leases, last.worker.not_begun);
    return consequence;
  }

  // The rows that a worker held when it died may be the cause. Each row has a limited number of
  // tries.
  std::vector<jobs::RangeFailure> failures(const WorkerDeath& death,
                                           const std::vector<jobs::Lease>& leases,
                                           const std::vector<int64_t>& not_begun) const {
    std::vector<jobs::RangeFailure> failures;
    if (is_of_its_surroundings(death) || (death.signal == SIGKILL && !death.memory))
      return failures;
    const jobs::Failure failure =
        death.failure(death.memory ? "memory" : "crash",
                      fmt::format("{} workers died while computing this row, the last by {}",
                                  options_.max_crashes, death.end_text()));
    for (const jobs::Lease& lease : leases)
      if (std::find(not_begun.begin(), not_begun.end(), lease.task) == not_begun.end())
        failures.push_back({.lease = lease, .failure = failure});
    return failures;
  }

  void each_second(int64_t /*released*/) override {
    show();
    tell();
  }

  void count_all() {
    next_count_all_ = Clock::now() + kCountAllEvery;
    open_ = supervisor_.store().counts(task_.run.group).open;
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
                       .extra = in_flight(all.rows_held)});
  }

  std::string in_flight(int64_t rows) const {
    if (rows == 0) return {};
    std::string text = fmt::format("{} in flight", counted(rows, "row"));
    if (!options_.asks_servers) return text;
    int64_t requests = 0;
    for (const Slot& slot : slots_) requests += slot.last.engine.running;
    return text + fmt::format(", {} at once", counted(requests, "request"));
  }

  void tell() {
    if (!options_.tell) return;
    std::map<size_t, WorkerStatus> statuses;
    for (size_t worker = 0; worker < slots_.size(); ++worker)
      statuses[worker] = slots_[worker].last;
    options_.tell(statuses);
  }

  struct Sample {
    Clock::time_point when;
    int64_t tokens = 0;
  };

  const RowSupervisorOptions& options_;
  const WorkerAssignment& task_;
  workers::WorkerSupervisor supervisor_;
  std::vector<Slot> slots_;
  std::optional<telemetry::Progress> progress_;
  std::deque<Sample> samples_;
  RowSupervisorReport report_;
  int64_t open_ = 0;               // open rows at the last count
  int64_t rows_when_counted_ = 0;  // rows finished here when open_ was counted
  Clock::time_point next_count_all_;
};

}  // namespace

RowSupervisorReport run_rows(const RowSupervisorOptions& options, const WorkerAssignment& task) {
  if (options.workers <= 0)
    throw ConfigError(fmt::format("a run needs at least one worker, found {}", options.workers),
                      {.hint = "give workers.world_size 1 or more"});
  return RowsRun(options, task).run();
}

}  // namespace convoy::process
