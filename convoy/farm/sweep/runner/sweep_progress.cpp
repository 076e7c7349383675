// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_progress.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/range_tally.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr Seconds kReadEvery{2};
// The largest share of the time that may be spent reading the store for the bar.
constexpr double kReadShare = 0.02;
constexpr double kRateSeconds = 2;
constexpr size_t kMostKnownCells = 4096;

double seconds_of(Clock::time_point time) { return Seconds(time.time_since_epoch()).count(); }

}  // namespace

SweepProgress::SweepProgress(const SweepPlan& plan, const Workload& workload, jobs::JobStore& store,
                             const StoredSweep& sweep, int64_t workers,
                             telemetry::ColorChoice color, LogLevel level)
    : workload_(workload),
      store_(store),
      sweep_(sweep),
      planned_cells_(static_cast<int64_t>(plan.cells.size())),
      tasks_(sweep.groups.size()),
      workers_(workers) {
  telemetry::ProgressOptions options;
  options.label = "sweep " + plan.label;
  for (const PlannedCell& planned : plan.cells) planned_units_ += planned.guesses;
  counts_guesses_ = planned_units_ > 0;
  if (!counts_guesses_) planned_units_ = planned_cells_;
  options.total = planned_units_;
  options.unit = counts_guesses_ ? "guess" : "cell";
  options.color = color;
  options.line_seconds = 2;
  if (level == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  refresh();
  learn_durations();
  options.start = shown_units_ = stored_.units;
  bar_ = std::make_unique<telemetry::Progress>(options);
  begin_ = pace_ = {Clock::now(), stored_.guesses};
  estimate_.note(seconds_of(begin_.when), stored_.done);
}

double SweepProgress::seconds_per_guess(const Cell& cell) {
  const auto known = known_seconds_.find(cell.parameters);
  if (known != known_seconds_.end()) return known->second;
  if (known_seconds_.size() >= kMostKnownCells) return known_seconds_.begin()->second;
  const double rate = workload_.guesses(cell)->expected_rate();
  return known_seconds_[cell.parameters] = rate > 0 ? 1 / rate : 0;
}

void SweepProgress::read_task(const jobs::TaskRecord& record, Task& task) {
  task.units = record.units_done;
  task.finished = record.result.has_value();
  const bool begun = !task.finished && task.units > 0;
  if (task.planned >= 0 && !task.finished && !begun) return;
  const PlannedCell planned = PlannedCell::parse(record.parameters);
  if (task.planned < 0) {
    task.planned = planned.guesses;
    task.has_rule = planned.stop.any();
    if (planned.guesses > 0) task.seconds_per_guess = seconds_per_guess(planned.cell);
  }
  if (planned.guesses == 0) {
    if (task.finished) task.seconds = cell_result(planned, record).seconds;
    return;
  }
  if (task.finished) {
    const Tally tally = cell_result(planned, record).tally;
    task.accepted = tally.accepted;
    task.units = tally.guesses;
  } else if (begun) {
    task.accepted = 0;
    for (const jobs::Part& part : store_.progress(record.number))
      task.accepted += RangeTally::parse(part.payload).total().accepted;
  }
}

// Learns from cells that were finished before this run.
void SweepProgress::learn_durations() {
  for (const std::vector<Task>& tasks : tasks_)
    for (const Task& task : tasks)
      if (task.seconds > 0) estimate_.measure(static_cast<int64_t>(task.seconds * 1e6), 0, 1);
}

std::vector<BusyWorker> SweepProgress::busy_workers() const {
  std::vector<BusyWorker> workers(static_cast<size_t>(workers_));
  for (const auto& [worker, begun] : begun_)
    if (worker < workers.size())
      workers[worker] = {.seconds = Seconds(Clock::now() - begun.when).count(),
                         .descents = begun.cells};
  // The store does not tell when the workers of other runners began.
  for (int64_t other = 0; other < others_; ++other) workers.push_back({.descents = 1});
  return workers;
}

SweepProgress::Amount SweepProgress::read_store() {
  Amount sum;
  for (size_t group = 0; group < sweep_.groups.size(); ++group) {
    std::vector<Task>& tasks = tasks_[group];
    size_t at = 0;
    store_.for_each_task(sweep_.groups[group].number, [&](const jobs::TaskRecord& record) {
      if (at == tasks.size()) tasks.emplace_back();
      Task& task = tasks[at++];
      if (!task.finished) read_task(record, task);
    });
    double planned = 0, needed = 0;  // sums over finished cells with a stop rule
    for (const Task& task : tasks)
      if (task.has_rule && task.finished) {
        planned += static_cast<double>(task.planned);
        needed += static_cast<double>(task.units);
      }
    const double share = planned > 0 && needed > 0 ? needed / planned : 1;
    for (const Task& task : tasks) {
      sum.cells += task.finished ? 1 : 0;
      sum.accepted += task.accepted;
      if (task.planned == 0) {
        ++(task.finished ? sum.done.descents : sum.left.descents);
        continue;
      }
      // A cell that ended early or failed has no work left.
      sum.guesses += task.units;
      sum.units += task.finished ? task.planned : std::min(task.planned, task.units);
      sum.done.guess_seconds += static_cast<double>(task.units) * task.seconds_per_guess;
      if (task.finished) continue;
      const double wanted = static_cast<double>(task.planned) * (task.has_rule ? share : 1);
      sum.left.guess_seconds +=
          std::max(0.0, wanted - static_cast<double>(task.units)) * task.seconds_per_guess;
    }
  }
  if (!counts_guesses_) sum.units = sum.cells;
  return sum;
}

void SweepProgress::add(size_t worker, const WorkerMessage& message) {
  if (message.kind == WorkerMessage::Kind::Begin)
    begun_[worker] = {Clock::now(), std::ssize(message.leases)};
  else if (message.kind != WorkerMessage::Kind::Note &&
           message.kind != WorkerMessage::Kind::Warning)
    begun_.erase(worker);
  if (message.kind == WorkerMessage::Kind::Computed) {
    Amount& amount = computed_[worker];
    if (counts_guesses_) amount.units += message.guesses;
    amount.guesses += message.guesses;
    amount.accepted += message.accepted;
    amount.done.guess_seconds += static_cast<double>(message.expected_microseconds) * 1e-6;
    amount.done.descents += message.cells;
    estimate_.measure(message.microseconds, message.expected_microseconds, message.cells);
  }
  if (message.kind == WorkerMessage::Kind::CellFailed) {
    ++handed_in_.cells;
    handed_in_.units += counts_guesses_ ? 0 : 1;
  }
  if (message.kind == WorkerMessage::Kind::Stored) {
    const Amount amount = std::exchange(computed_[worker], Amount{});
    handed_in_.units += counts_guesses_ ? message.guesses : message.cells;
    handed_in_.guesses += message.guesses;
    handed_in_.accepted += message.accepted;
    handed_in_.cells += message.cells;
    handed_in_.done.guess_seconds += amount.done.guess_seconds;
    handed_in_.done.descents += amount.done.descents;
  }
}

void SweepProgress::forget(size_t worker) {
  computed_.erase(worker);
  begun_.erase(worker);
}

void SweepProgress::refresh() {
  const auto begin = Clock::now();
  stored_ = read_store();
  handed_in_ = {};
  std::set<std::string> owners;
  for (const jobs::Lease& lease : all_leases(store_, sweep_)) owners.insert(lease.owner);
  others_ = std::max<int64_t>(0, std::ssize(owners) - workers_);
  const Seconds took = Clock::now() - begin;
  next_read_ = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::max(kReadEvery, took / kReadShare));
}

SweepProgress::Amount SweepProgress::now() const {
  Amount sum = stored_;
  const auto add = [&](const Amount& more) {
    sum.units += more.units;
    sum.guesses += more.guesses;
    sum.accepted += more.accepted;
    sum.cells += more.cells;
    sum.done.guess_seconds += more.done.guess_seconds;
    sum.left.guess_seconds -= more.done.guess_seconds;
    sum.done.descents += more.done.descents;
    sum.left.descents -= more.done.descents;
  };
  add(handed_in_);
  for (const auto& [worker, amount] : computed_) add(amount);
  sum.left.guess_seconds = std::max(0.0, sum.left.guess_seconds);
  sum.left.descents = std::max<int64_t>(0, sum.left.descents);
  sum.units = std::min(sum.units, planned_units_);
  sum.cells = std::min(sum.cells, planned_cells_);
  return sum;
}

void SweepProgress::show() {
  if (Clock::now() >= next_read_) refresh();
  const Amount amount = now();
  const auto time = Clock::now();
  estimate_.note(seconds_of(time), amount.done);
  const double elapsed = Seconds(time - pace_.when).count();
  if (elapsed >= kRateSeconds) {
    rate_ = static_cast<double>(amount.guesses - pace_.guesses) / elapsed;
    pace_ = {time, amount.guesses};
  }
  shown_units_ = std::max(shown_units_, amount.units);
  telemetry::ProgressFigures figures;
  figures.done = shown_units_;
  figures.seconds_left = estimate_.seconds_left(amount.left, busy_workers());
  if (counts_guesses_) {
    figures.per_second = std::max(rate_, -1.0);
    figures.per_second_unit = "guesses/s";
    figures.extra = fmt::format("{} accepted  cells {}/{}",
                                telemetry::count_text(static_cast<double>(amount.accepted)),
                                amount.cells, planned_cells_);
  }
  shown_cells_ = amount.cells;
  figures_ = figures;
  bar_->update(figures);
}

std::string SweepProgress::text() const {
  std::string line = fmt::format("{} %: cells {}/{}", percent(), shown_cells_, planned_cells_);
  if (counts_guesses_)
    line +=
        fmt::format(", {} of {} guesses", telemetry::count_text(static_cast<double>(shown_units_)),
                    telemetry::count_text(static_cast<double>(planned_units_)));
  if (figures_.per_second >= 0)
    line += fmt::format(", {} guesses/s", telemetry::count_text(figures_.per_second));
  if (figures_.seconds_left > 0)
    line += fmt::format(", {} left", telemetry::duration_text(figures_.seconds_left));
  return line;
}

int64_t SweepProgress::percent() const {
  return planned_units_ > 0 ? 100 * shown_units_ / planned_units_ : 100;
}

bool SweepProgress::log_line_is_due() {
  constexpr std::chrono::minutes kOften{1}, kSeldom{10};
  const auto waited = Clock::now() - logged_;
  if (waited < kOften || (waited < kSeldom && percent() == logged_percent_)) return false;
  logged_ = Clock::now();
  logged_percent_ = percent();
  return true;
}

void SweepProgress::finish() {
  refresh();
  computed_.clear();
  // The last rate is the rate of the whole run.
  const double elapsed = Seconds(Clock::now() - begin_.when).count();
  rate_ = stored_.guesses > begin_.guesses
              ? static_cast<double>(stored_.guesses - begin_.guesses) / std::max(elapsed, 1e-3)
              : -1;
  pace_.when = Clock::now();
  shown_units_ = 0;
  show();
  bar_->finish();
}

}  // namespace convoy::sweep
