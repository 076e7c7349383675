// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/models/hub_transfer.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "convoy/core/base/quiet_thread.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Fewer bytes are hashed so fast that only a slow disk makes progress worth a line.
constexpr int64_t kBytesOfLongHashing = 1024 * kMebibyte;

// A progress bar in MiB. The rate covers the last seconds, so that a stall is visible.
class TransferDisplay {
 public:
  // A quiet display shows nothing of less than `quiet_bytes` while they take no time.
  TransferDisplay(const Context& context, const std::string& label, int64_t quiet_bytes = 0)
      : quiet_bytes_(quiet_bytes) {
    const bool is_quiet = context.common.quiet || context.common.json;
    options_ = {.label = label,
                .unit = "MiB",
                .style = is_quiet ? telemetry::ProgressStyle::None : telemetry::ProgressStyle::Auto,
                .color = telemetry::color_choice(context.common.color)};
  }

  void update(const hub::TransferAmount& now) {
    const int64_t total_bytes = now.total_bytes;
    if (total_bytes == 0) return;  // the size is not known yet
    if (!bar_) {
      options_.total = mebibytes(total_bytes);
      options_.start = now.start_bytes / kMebibyte;
      options_.quiet_seconds = total_bytes < quiet_bytes_ ? 1 : 0;
      bar_.emplace(options_);
      begin_ = std::chrono::steady_clock::now();
    }
    const double seconds = seconds_since(begin_);
    const auto moved = static_cast<double>(now.done_bytes - now.start_bytes);
    telemetry::ProgressFigures figures{
        .done = now.done_bytes >= total_bytes ? mebibytes(total_bytes) : now.done_bytes / kMebibyte,
        .per_second_unit = "MiB/s",
        .extra = fmt::format("{} of {} files", now.done_files.load(), now.total_files.load())};
    if (seconds > 0.5) {
      figures.per_second = moved / kMebibyte / seconds;
      if (moved > 0)
        figures.seconds_left = static_cast<double>(total_bytes - now.done_bytes) / moved * seconds;
    }
    bar_->update(figures);
  }
  void finish() {
    if (bar_) bar_->finish();
  }

 private:
  static int64_t mebibytes(int64_t bytes) { return (bytes + kMebibyte - 1) / kMebibyte; }

  int64_t quiet_bytes_;
  telemetry::ProgressOptions options_;
  std::optional<telemetry::Progress> bar_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

bool run_transfer(const Context& context, const std::string& label, bool shows_progress,
                  const Transfer& transfer) {
  processes::SignalStream signals(processes::default_stop_signals());
  std::atomic<bool> stop = false;
  std::atomic<bool> is_over = false;
  hub::TransferProgress progress;
  std::exception_ptr failure;
  std::thread worker = quiet_thread([&] {
    try {
      transfer([&] { return stop.load(); }, progress);
    } catch (...) {
      failure = std::current_exception();
    }
    is_over = true;
  });
  TransferDisplay hashing(context, "hash", kBytesOfLongHashing);
  TransferDisplay display(context, label);
  const auto show = [&] {
    if (!shows_progress) return;
    hashing.update(progress.hashing);
    if (progress.hashing.done_files == progress.hashing.total_files) hashing.finish();
    display.update(progress);
  };
  while (!is_over) {
    if (signals.asked_to_stop()) stop = true;
    show();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  worker.join();
  if (failure) {
    if (stop) return false;
    std::rethrow_exception(failure);
  }
  show();
  display.finish();
  return true;
}

}  // namespace convoy::apps
