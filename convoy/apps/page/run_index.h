// SPDX-License-Identifier: Apache-2.0
//
// All runs of a folder as the page shows them, kept current.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/page/chat_model.h"
#include "convoy/apps/page/watched_run.h"

namespace convoy::page {

// Thread-safe. Returns null or empty for a run or file that does not exist.
class RunIndex {
 public:
  explicit RunIndex(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // One line per run. Reads new data at most once a second, and a large amount in parts. The line
  // of a run that is not read completely says so.
  std::vector<nlohmann::json> list();
  // Curves by run: {run: curves}.
  nlohmann::json curves(const std::vector<std::string>& names);
  // Curves of the devices of the run's hosts, over seconds: {host: curves}; empty without a
  // devices.csv.
  nlohmann::json device_curves(const std::string& name);
  // run.json, metrics.json, the names of logs, and the steps that have samples.
  nlohmann::json details(const std::string& name);
  // Returns nothing when the run is unknown, is still running, or left no model.
  std::optional<ChatModel> chat_model(const std::string& name);
  // The differences between the runs' settings and results (telemetry::compare_runs); at least two
  // existing runs.
  nlohmann::json comparison(const std::vector<std::string>& names);
  // The last bytes of one of the run's logs, starting at the beginning of a line.
  std::string log(const std::string& name, const std::string& file_name);
  // The first answers of an evaluation's samples, one JSON object each.
  nlohmann::json samples(const std::string& name, int64_t step);
  // The best, the worst and the longest texts that a step learnt from, one JSON object each.
  nlohmann::json rollouts(const std::string& name, int64_t step);

 private:
  void refresh();
  WatchedRun* find(const std::string& name);

  std::filesystem::path folder_;
  std::mutex mutex_;
  // Time when all data had been read; zero = not yet, or there is more to read.
  std::chrono::steady_clock::time_point refreshed_{};
  std::map<std::string, std::unique_ptr<WatchedRun>> runs_;
};

}  // namespace convoy::page
