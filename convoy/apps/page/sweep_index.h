// SPDX-License-Identifier: Apache-2.0
//
// The sweeps of a folder as the page shows them: the stores below it, their sweeps, and the files
// beside them.
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

#include "convoy/apps/page/watched_store.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::page {

// Thread-safe. Returns null or empty for a sweep that does not exist.
class SweepIndex {
 public:
  explicit SweepIndex(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // One line per sweep, as for runs. Reads again at most once a second.
  std::vector<nlohmann::json> list();
  // Settings, axes, the table over seeds, cells, failures, and the names of figures and tables;
  // null when the sweep does not exist.
  nlohmann::json details(const std::string& name);
  // The figure of `convoy sweep plot` over the current results.
  std::optional<std::string> figure_svg(const std::string& name, bool log_y);
  // Returns one of the figures and tables in details().
  std::optional<std::string> file(const std::string& name, const std::string& file);

 private:
  struct Place {
    WatchedStore* store = nullptr;
    const WatchedSweep* sweep = nullptr;
  };

  void refresh();
  Place find(const std::string& name);

  std::filesystem::path folder_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point refreshed_{};
  std::map<std::filesystem::path, std::unique_ptr<WatchedStore>> stores_;
};

}  // namespace convoy::page
