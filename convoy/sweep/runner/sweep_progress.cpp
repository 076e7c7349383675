// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/sweep_progress.h"

#include <algorithm>

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kReadEvery{2'000};
constexpr double kRateSeconds = 2;
// Reading more tasks than this every two seconds would cost what workers need.
constexpr int64_t kMostTasksToRead = 5'000;

}  // namespace

SweepProgress::SweepProgress(const SweepPlan& plan, jobs::JobStore& store, const StoredSweep& sweep,
                             telemetry::ColorChoice color, LogLevel level)
    : store_(store), sweep_(sweep), planned_cells_(static_cast<int64_t>(plan.cells.size())) {
  telemetry::ProgressOptions options;
  options.label = "sweep " + plan.label;
  for (const PlannedCell& planned : plan.cells) options.total += planned.guesses;
  counts_guesses_ = options.total > 0;
  if (!counts_guesses_) options.total = planned_cells_;
  options.unit = counts_guesses_ ? "guess" : "cell";
  options.color = color;
  options.line_seconds = 2;
  if (level == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  stored_ = read_store();
  options.start = stored_.units;
  bar_ = std::make_unique<telemetry::Progress>(options);
  rate_begin_ = Clock::now();
  next_read_ = Clock::now() + kReadEvery;
}

SweepProgress::Done SweepProgress::read_store() {
  Done done;
  for (const jobs::Group& group : sweep_.groups) {
    const jobs::Counts counts = store_.counts(group.number);
    done.cells += counts.done + counts.failed;
    if (!counts_guesses_) continue;
    store_.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
      // A cell that ended early or failed leaves nothing to do.
      const PlannedCell planned = PlannedCell::parse(task.parameters);
      done.units += std::min(planned.guesses, task.result ? task.units : task.units_done);
    });
  }
  if (!counts_guesses_) done.units = done.cells;
  return done;
}

void SweepProgress::add(const WorkerMessage& message) {
  if (message.kind != WorkerMessage::Kind::Progress) return;
  since_ += counts_guesses_ ? message.guesses : message.cells;
  guesses_ += message.guesses;
  accepted_ += message.accepted;
  stored_.cells += message.cells;
}

void SweepProgress::refresh() {
  next_read_ = Clock::now() + kReadEvery;
  // Workers tell of guesses before the store has them, and a bar does not go back.
  const int64_t shown = stored_.units + since_;
  stored_ = read_store();
  since_ = std::max<int64_t>(0, shown - stored_.units);
}

void SweepProgress::show() {
  if (Clock::now() >= next_read_ && planned_cells_ <= kMostTasksToRead) refresh();
  const double elapsed = std::chrono::duration<double>(Clock::now() - rate_begin_).count();
  if (elapsed >= kRateSeconds || rate_ == 0)
    rate_ = static_cast<double>(guesses_ - rate_guesses_) / std::max(elapsed, 1e-3);
  if (elapsed >= kRateSeconds) {
    rate_guesses_ = guesses_;
    rate_begin_ = Clock::now();
  }
  telemetry::ProgressFigures figures;
  figures.done = stored_.units + since_;
  if (counts_guesses_) {
    figures.per_second = rate_;
    figures.per_second_unit = "guesses/s";
    figures.extra =
        fmt::format("{} accepted", telemetry::count_text(static_cast<double>(accepted_)));
    figures.extra += fmt::format("  cells {}/{}", stored_.cells, planned_cells_);
  }
  bar_->update(figures);
}

void SweepProgress::finish() {
  show();
  bar_->finish();
}

}  // namespace convoy::sweep
