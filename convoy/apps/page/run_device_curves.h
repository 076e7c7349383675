// SPDX-License-Identifier: Apache-2.0
//
// Device curves of all hosts of a run: each host's launcher writes its own file into the run's
// folder.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convoy/apps/page/device_curves.h"
#include "convoy/apps/page/line_tail.h"

namespace convoy::page {

// Points of curves, [[step, mean, low, high], ...], null for a gap's values.
nlohmann::json points_of(const CurveSketch& curve);

class RunDeviceCurves {
 public:
  explicit RunDeviceCurves(std::filesystem::path run) : run_(std::move(run)) {}

  // Reads the new lines of all files, and of new files.
  void read_on();

  // {host: {"gpu0/power_w": points}}, over seconds since the first sample of any host.
  nlohmann::json curves() const;

 private:
  struct OfHost {
    LineTail lines;
    DeviceCurves curves{};
  };

  void find_files();

  std::filesystem::path run_;
  std::map<std::filesystem::path, OfHost> files_;
};

}  // namespace convoy::page
