// SPDX-License-Identifier: Apache-2.0
//
// What the devices of all hosts of a run did: each host's launcher writes a file of its own into
// the run's folder.
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

class RunDevices {
 public:
  explicit RunDevices(std::filesystem::path run) : run_(std::move(run)) {}

  // Files that came since are found, too.
  void read_on();

  // {host: {"gpu0/power_w": points}}, over seconds since the first look of any host.
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
