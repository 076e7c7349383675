// SPDX-License-Identifier: Apache-2.0
//
// The sweeps in one store file, read again when the file changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/jobs/task.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::page {

struct WatchedSweep {
  std::string name;  // path below the page's folder: "results/ssm-1a2b3c4d5e6f"
  sweep::SweepName stored;
  jobs::Counts counts;  // counts of cells
  bool at_work = false;
  double updated_seconds = 0;  // since 1970
  std::string problem;         // why the sweep cannot be read; empty = it can
};

class WatchedStore {
 public:
  // `prefix`: prepended to its sweeps' names.
  WatchedStore(std::filesystem::path file, std::string prefix)
      : file_(std::move(file)), prefix_(std::move(prefix)) {}

  // An unreadable store appears as one sweep with a problem.
  void read_on();

  const std::vector<WatchedSweep>& sweeps() const { return sweeps_; }
  std::filesystem::path folder() const { return file_.parent_path(); }
  const std::filesystem::path& file() const { return file_; }
  // Throws an error when the store cannot be read.
  sweep::SweepResults results(const WatchedSweep& sweep) const;

 private:
  // Sizes and times of the file and of its write-ahead log.
  using Stamp = std::pair<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>;

  Stamp stamp() const;
  std::vector<WatchedSweep> read() const;

  std::filesystem::path file_;
  std::string prefix_;
  Stamp stamp_{};
  std::chrono::steady_clock::time_point next_read_{};
  std::vector<WatchedSweep> sweeps_;
};

}  // namespace convoy::page
