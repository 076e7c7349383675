// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/known_peak.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/cpu_name.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::sizing {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json records_in(const fs::path& file) {
  std::ifstream stream(file);
  const ordered_json whole = ordered_json::parse(stream, nullptr, false);
  if (!whole.is_object() || !whole.contains("peaks") || !whole["peaks"].is_array())
    return ordered_json::array();
  return whole["peaks"];
}

bool is_of(const ordered_json& record, const PeakOwner& owner) {
  return record.is_object() &&
         PeakOwner{.host = member_or(record, "host", std::string()),
                   .device = member_or(record, "device", std::string()),
                   .name = member_or(record, "name", std::string()),
                   .cpus = static_cast<int>(member_or(record, "cpus", int64_t{0})),
                   .dtype = member_or(record, "dtype", std::string())} == owner;
}

}  // namespace

PeakOwner peak_owner(const std::string& device, const std::string& dtype) {
  PeakOwner owner{.host = telemetry::host_name(), .device = device, .dtype = dtype};
  if (device != "cpu") return owner;
  owner.name = cpu_name();
  owner.cpus = usable_cpus();
  return owner;
}

fs::path peaks_file() {
  for (const auto& [name, below] : {std::pair{"XDG_CACHE_HOME", ""}, std::pair{"HOME", ".cache"}}) {
    const fs::path folder = environment_text(name);
    if (folder.is_absolute()) return folder / below / "convoy" / "peaks.json";
  }
  return {};
}

std::optional<double> known_peak(const fs::path& file, const PeakOwner& owner) {
  for (const ordered_json& record : records_in(file)) {
    const double flops = is_of(record, owner) ? member_or(record, "flops_per_second", 0.0) : 0.0;
    if (flops > 0) return flops;
  }
  return std::nullopt;
}

void remember_peak(const fs::path& file, const PeakOwner& owner, double flops) {
  if (known_peak(file, owner).value_or(0) >= flops) return;
  ordered_json records = ordered_json::array();
  for (ordered_json& record : records_in(file))
    if (!is_of(record, owner)) records.push_back(std::move(record));
  records.push_back({{"host", owner.host},
                     {"device", owner.device},
                     {"name", owner.name},
                     {"cpus", owner.cpus},
                     {"dtype", owner.dtype},
                     {"flops_per_second", flops}});
  const ordered_json whole = {{"schema", "convoy.peaks.v1"}, {"peaks", records}};
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  write_file_atomic(file, whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace convoy::sizing
