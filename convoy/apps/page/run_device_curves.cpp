// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/run_device_curves.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPrefix = "devices-";

// The files of `convoy process` name nodes, not hosts: devices.csv and devices-1.csv.
std::string host_of(const fs::path& file, const DeviceCurves& curves) {
  if (!curves.host().empty()) return curves.host();
  const std::string name = file.stem().string();
  return "node " + (name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : "0");
}

json points_with(const CurveSketch& curve, const std::function<json(int64_t step)>& place) {
  json points = json::array();
  for (const CurveBucket& bucket : curve.buckets()) {
    const json at = place(bucket.step);
    points.push_back(bucket.points == 0
                         ? json::array({at, nullptr, nullptr, nullptr})
                         : json::array({at, bucket.sum / static_cast<double>(bucket.points),
                                        bucket.low, bucket.high}));
  }
  return points;
}

}  // namespace

json points_of(const CurveSketch& curve) {
  return points_with(curve, [](int64_t step) { return json(step); });
}

// A launcher writes devices.csv when the run is its own, and logs/devices-HOST.csv when it takes
// part; nodes of `convoy process` write devices-N.csv.
void RunDeviceCurves::find_files() {
  files_.try_emplace(run_ / "devices.csv", OfHost{.lines = LineTail(run_ / "devices.csv")});
  for (const fs::path& folder : {run_, run_ / "logs"}) {
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kPrefix) && name.ends_with(".csv"))
        files_.try_emplace(entry.path(), OfHost{.lines = LineTail(entry.path())});
    }
  }
}

void RunDeviceCurves::read_on() {
  find_files();
  for (auto& [file, host] : files_)
    host.lines.read([&each = host.curves] { each.forget(); },
                    [&each = host.curves](const std::string& line) { each.add_line(line); });
}

json RunDeviceCurves::curves() const {
  double begin = -1;
  for (const auto& [file, host] : files_)
    if (const double first = host.curves.begin_seconds(); first >= 0)
      begin = begin < 0 ? first : std::min(begin, first);
  json all = json::object();
  for (const auto& [file, host] : files_) {
    if (host.curves.begin_seconds() < 0) continue;
    json& of_host = all[host_of(file, host.curves)];
    const double later = host.curves.begin_seconds() - begin;
    for (const auto& [tag, curve] : host.curves.curves())
      of_host[tag] = points_with(
          curve, [later](int64_t step) { return json(later + static_cast<double>(step) * 1e-3); });
  }
  return all;
}

}  // namespace convoy::page
