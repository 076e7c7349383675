// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/runs/run_cleaning.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerDay = 86400;

int64_t bytes_below(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code vanished;
    if (entry->is_regular_file(vanished) && !entry->is_symlink(vanished))
      bytes += static_cast<int64_t>(entry->file_size(vanished));
  }
  return bytes;
}

// True when the folder holds more than the run's own records: files that a person may need.
bool left_something(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"adapter", "model", "samples", "rollouts", "checkpoints"})
    if (fs::exists(folder / name, error) && !fs::is_empty(folder / name, error)) return true;
  // Data processing and other commands write other kinds of output files.
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == "events.jsonl" || name.starts_with("devices")) continue;
    const std::string ending = entry.path().extension().string();
    if (ending == ".jsonl") return true;
    if (ending == ".db" || ending == ".parquet" || ending == ".csv") return true;
  }
  return false;
}

double measure_of(const RunHistory& run) {
  if (const auto best = lowest(run.eval_loss)) return best->value;
  const double last = run.train_loss.empty() ? INFINITY : run.train_loss.back().value;
  return std::isfinite(last) ? last : INFINITY;
}

RemovableRun removable(const RunHistory& run, const CleaningRequest& request, std::string reason) {
  const fs::path path = request.only_checkpoints ? run.path / "checkpoints" : run.path;
  return {path, run.path, run.name, std::move(reason), bytes_below(path)};
}

// The lock is checked too, because the second start of a run that ended may not have written an
// event yet.
bool goes_on(const RunHistory& run) {
  return run.state == RunState::Running || run_folder_is_held(run.path);
}

bool has_checkpoints(const RunHistory& run) {
  std::error_code error;
  const fs::path folder = run.path / "checkpoints";
  return fs::is_directory(folder, error) && !fs::is_empty(folder, error);
}

}  // namespace

std::vector<RemovableRun> removable_runs(const std::vector<RunHistory>& runs,
                                         const CleaningRequest& request, double now_seconds) {
  std::vector<const RunHistory*> ended;
  for (const RunHistory& run : runs)
    if (!goes_on(run)) ended.push_back(&run);
  if (request.keep_best > 0) {
    std::erase_if(ended, [](const RunHistory* run) { return !std::isfinite(measure_of(*run)); });
    std::stable_sort(ended.begin(), ended.end(),
                     [](const RunHistory* left, const RunHistory* right) {
                       return measure_of(*left) < measure_of(*right);
                     });
    const auto kept = std::min<std::ptrdiff_t>(std::ssize(ended), request.keep_best);
    ended.erase(ended.begin(), ended.begin() + kept);
  }
  std::vector<RemovableRun> chosen;
  for (const RunHistory* run : ended) {
    if (request.older_than_days > 0 &&
        now_seconds - run->updated_seconds < request.older_than_days * kSecondsPerDay)
      continue;
    if (request.only_checkpoints && !has_checkpoints(*run)) continue;
    // Runs that have not finished may still be resumed from their checkpoints.
    if (request.only_checkpoints && request.keep_best == 0 && run->state != RunState::Finished)
      continue;
    if (request.keep_best > 0)
      chosen.push_back(removable(*run, request,
                                 fmt::format("loss {:.4f} is not among the best {}",
                                             measure_of(*run), request.keep_best)));
    else if (request.only_checkpoints)
      chosen.push_back(removable(*run, request, "finished"));
    else if (run->steps == 0 && !left_something(run->path))
      chosen.push_back(removable(*run, request, "never took a step"));
  }
  return chosen;
}

std::vector<RemovableRun> named_runs(const std::vector<RunHistory>& runs,
                                     const CleaningRequest& request) {
  std::vector<RemovableRun> chosen;
  for (const RunHistory& run : runs) {
    if (goes_on(run))
      throw ConfigError(fmt::format("{} is in progress: it cannot be removed", run.name),
                        {.hint = "wait for its end, or stop it"});
    chosen.push_back(removable(run, request, "named"));
  }
  return chosen;
}

void remove_run(const RemovableRun& run) {
  if (run_folder_is_held(run.folder))
    throw ConfigError(fmt::format("{} is in progress again: it is not removed", run.name),
                      {.hint = "wait for its end, or stop it"});
  std::error_code error;
  fs::remove_all(run.path, error);
  if (error)
    throw IoError(fmt::format("cannot remove it: {}", error.message()),
                  {.file = run.path.string(), .hint = "check its permissions"});
}

}  // namespace convoy::telemetry
