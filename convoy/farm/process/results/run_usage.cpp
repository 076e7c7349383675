// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/run_usage.h"

#include <algorithm>

#include "convoy/core/config/resolve.h"

namespace convoy::process {
namespace {

template <class Number>
Number grown(Number before, Number now) {
  return now >= before ? now - before : now;
}

}  // namespace

UsageFigures usage_between(const std::map<size_t, WorkerStatus>& before,
                           const std::map<size_t, WorkerStatus>& now, double seconds) {
  UsageFigures figures;
  int64_t tokens = 0;
  for (const auto& [worker, status] : now) {
    const auto known = before.find(worker);
    const EngineFigures& old = known == before.end() ? EngineFigures{} : known->second.engine;
    tokens += grown(old.decode_tokens, status.engine.decode_tokens);
    figures.prefill_share += grown(old.prefill_seconds, status.engine.prefill_seconds);
    figures.decode_share += grown(old.decode_seconds, status.engine.decode_seconds);
    figures.running += status.engine.running;
    figures.waiting += status.engine.waiting;
    figures.kv_use += status.engine.kv_use;
    figures.leases += status.worker.rows_held;
  }
  const double workers = std::max<double>(1, static_cast<double>(now.size()));
  const double elapsed = std::max(seconds, 1e-3);
  figures.tokens_per_second = static_cast<double>(tokens) / elapsed;
  figures.kv_use /= workers;
  figures.prefill_share = std::min(1.0, figures.prefill_share / (elapsed * workers));
  figures.decode_share = std::min(1.0, figures.decode_share / (elapsed * workers));
  return figures;
}

RunUsage::RunUsage(const std::filesystem::path& path, double interval_seconds)
    : csv_(path),
      devices_(monitor::device_sources(config::process_environment())),
      interval_seconds_(interval_seconds) {
  csv_.add(devices_.read(), {});
}

void RunUsage::add(const std::map<size_t, WorkerStatus>& statuses) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  if (seconds < interval_seconds_) return;
  csv_.add(devices_.read(), usage_between(before_, statuses, seconds));
  before_ = statuses;
  last_ = now;
}

}  // namespace convoy::process
