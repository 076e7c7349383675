// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/farm/process/results/run_usage.h"

namespace convoy::apps {
namespace {

constexpr std::chrono::seconds kEvery{10};
// At most 1/kCountEvery of the time is spent on counting rows.
constexpr int kCountEvery = 100;

}  // namespace

void ProcessProgress::add(const std::map<size_t, process::WorkerStatus>& statuses) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  const double seconds = std::chrono::duration<double>(now - last_).count();
  write(process::usage_between(before_, statuses, seconds).tokens_per_second);
  before_ = statuses;
  last_ = now;
  next_ = now + std::max<Clock::duration>(kEvery, kCountEvery * (Clock::now() - now));
}

void ProcessProgress::finish(double tokens_per_second) { write(tokens_per_second); }

void ProcessProgress::write(double tokens_per_second) {
  const jobs::Counts counts = store_.counts(run_.group);
  events_.append(telemetry::EventKind::Step, {{"step", run_.rows - counts.open},
                                              {"tokens_per_second", tokens_per_second},
                                              {"rows_failed", counts.failed}});
}

}  // namespace convoy::apps
