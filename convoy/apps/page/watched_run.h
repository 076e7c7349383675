// SPDX-License-Identifier: Apache-2.0
//
// One run as the page shows it: its events so far, read on as the file grows. Memory does not grow
// with the steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/apps/page/curve_sketch.h"
#include "convoy/apps/page/line_tail.h"
#include "convoy/apps/page/run_device_curves.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::page {

class WatchedRun {
 public:
  // `name`: the run's path below the folder of the runs.
  WatchedRun(std::filesystem::path folder, std::string name);

  // Reads new lines of events.jsonl; from the beginning when the file was replaced or shortened.
  // Skips lines that are no events: they do not hide the run. Stops soon after `deadline`; returns
  // false when there is more to read.
  bool read_on(std::chrono::steady_clock::time_point deadline);

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }
  telemetry::RunState state() const;
  // The run's line in the list: kind ("train" or "process", whose steps are rows), name, state
  // ("reading" with `read`, the share read so far, until the end is reached), steps, total_steps,
  // loss, eval_loss, speed, speed_unit, seconds_left (for a run in progress, at its last step),
  // failed, created, updated, failure.
  nlohmann::json summary() const;
  // {tag: [[step, mean, low, high], ...]}, null for a gap's values. Tags: "train/loss",
  // "eval/loss", "rank/0/loss".
  nlohmann::json curves() const;
  // Returns RunDeviceCurves::curves(). Reads new device data first; read_on() does not, because the
  // list of runs does not show it.
  nlohmann::json device_curves();

 private:
  void forget();
  void add_line(const std::string& line);
  void add_start(const nlohmann::json& event);
  void add_figures(const std::string& group, const nlohmann::json& event);
  void add_pace(int64_t step);
  std::optional<double> seconds_left() const;

  std::filesystem::path folder_;
  std::string name_;
  LineTail events_;
  RunDeviceCurves devices_;
  telemetry::RunState state_ = telemetry::RunState::Empty;
  std::string failure_;
  std::string task_;
  int64_t step_ = 0;
  int64_t total_steps_ = 0;
  double created_seconds_ = 0;
  double updated_seconds_ = 0;
  double best_evaluation_ = 0;
  bool evaluated_ = false;
  std::map<std::string, CurveSketch> curves_;
  std::vector<std::pair<int64_t, double>> pace_;  // recent steps and their times
};

}  // namespace convoy::page
