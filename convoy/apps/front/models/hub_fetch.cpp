// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/models/hub_fetch.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// A progress bar in MiB. The rate covers the last seconds, so that a stall is visible.
class FetchDisplay {
 public:
  FetchDisplay(const Context& context, const std::string& label)
      : label_(label), is_quiet_(context.common.quiet || context.common.json) {
    options_ = {
        .label = label,
        .unit = "MiB",
        .style = is_quiet_ ? telemetry::ProgressStyle::None : telemetry::ProgressStyle::Auto,
        .color = telemetry::color_choice(context.common.color)};
  }

  void update(const hub::FetchProgress& now) {
    const int64_t total_bytes = now.total_bytes;
    if (total_bytes == 0) return;  // the size is not known yet
    if (!bar_) {
      options_.total = mebibytes(total_bytes);
      options_.start = now.start_bytes / kMebibyte;
      bar_.emplace(options_);
      begin_ = std::chrono::steady_clock::now();
    }
    const double seconds = seconds_since(begin_);
    const auto fetched = static_cast<double>(now.done_bytes - now.start_bytes);
    telemetry::ProgressFigures figures{
        .done = now.done_bytes >= total_bytes ? mebibytes(total_bytes) : now.done_bytes / kMebibyte,
        .per_second_unit = "MiB/s",
        .extra = fmt::format("{} of {} files", now.done_files.load(), now.total_files.load())};
    if (seconds > 0.5) {
      figures.per_second = fetched / kMebibyte / seconds;
      if (fetched > 0)
        figures.seconds_left =
            static_cast<double>(total_bytes - now.done_bytes) / fetched * seconds;
    }
    bar_->update(figures);
  }
  void finish() {
    if (bar_) bar_->finish();
  }

 private:
  static int64_t mebibytes(int64_t bytes) { return (bytes + kMebibyte - 1) / kMebibyte; }

  std::string label_;
  bool is_quiet_;
  telemetry::ProgressOptions options_;
  std::optional<telemetry::Progress> bar_;
  std::chrono::steady_clock::time_point begin_;
};

nlohmann::ordered_json result_json(const FetchRequest& request, const FetchFlags& flags,
                                   const hub::FetchResult& result) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const hub::FetchedFile& one : result.files)
    files.push_back(
        {{"path", one.file.path}, {"bytes", one.file.size_bytes}, {"was_there", one.was_there}});
  return {{"repository", request.repository.id},
          {"revision", flags.revision},
          {"commit", result.commit},
          {"folder", result.folder.string()},
          {"fetched_bytes", flags.dry_run ? 0 : result.fetched_bytes},
          {"to_fetch_bytes", flags.dry_run ? result.fetched_bytes : 0},
          {"files", std::move(files)}};
}

void print_result(const Context& context, const FetchFlags& flags, const FetchRequest& request,
                  const hub::FetchResult& result) {
  if (context.common.json) {
    std::cout << result_json(request, flags, result).dump(1) << "\n";
    return;
  }
  if (flags.dry_run) {
    for (const hub::FetchedFile& one : result.files)
      fmt::print("{:>12}  {}{}\n", one.file.size_bytes, one.file.path,
                 one.was_there ? "  (is there)" : "");
    fmt::print("{} to fetch\n", telemetry::bytes_text(result.fetched_bytes));
    return;
  }
  const Log log = context.log();
  if (result.fetched_bytes == 0)
    log.info(fmt::format("{}: {} there", request.repository.id,
                         result.files.size() == 1
                             ? std::string("the file is")
                             : fmt::format("all {} files are", result.files.size())));
  if (!request.look || request.look(result.folder, log))
    log.info(fmt::format("use it by its id: {}", request.use));
  fmt::print("{}\n", result.folder.string());
}

}  // namespace

int fetch_from_hub(const Context& context, const FetchFlags& flags, const FetchRequest& request) {
  processes::SignalStream signals(processes::default_stop_signals());
  const hub::HubSettings settings = hub::read_hub_settings();
  const hub::FetchPlan plan{
      .repository = request.repository,
      .revision = flags.revision,
      .choice = {.include = flags.include.names, .exclude = flags.exclude.names},
      .is_read = request.is_read,
      .cache =
          flags.cache_dir.empty() ? io::hub_cache_folder() : std::filesystem::path(flags.cache_dir),
      .num_parallel = flags.jobs,
      .verify = flags.verify,
      .dry_run = flags.dry_run};
  std::atomic<bool> stop = false;
  std::atomic<bool> is_over = false;
  hub::FetchProgress progress;
  hub::FetchResult result;
  std::exception_ptr failure;
  const Log log = context.log();
  std::thread worker = quiet_thread([&] {
    try {
      result = hub::fetch(
          plan, settings, [&] { return stop.load(); }, progress, log);
    } catch (...) {
      failure = std::current_exception();
    }
    is_over = true;
  });
  FetchDisplay display(context, flags.dry_run ? "ask" : "fetch");
  while (!is_over) {
    if (signals.asked_to_stop()) stop = true;
    if (!flags.dry_run) display.update(progress);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  worker.join();
  if (failure) {
    if (stop) {
      log.info("stopped; the same command resumes the download");
      return static_cast<int>(ExitCode::Stopped);
    }
    std::rethrow_exception(failure);
  }
  if (!flags.dry_run) display.update(progress);
  display.finish();
  print_result(context, flags, request, result);
  return 0;
}

}  // namespace convoy::apps
