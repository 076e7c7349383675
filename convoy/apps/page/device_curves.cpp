// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/device_curves.h"

#include <optional>
#include <set>

namespace convoy::page {
namespace {

// The columns that the page shows, by their names in the file, which has more columns. Names such
// as GPU_Utilization are from the files of the multi-GPU guide, to which `convoy process` appends
// values of its engines.
const std::map<std::string, std::string> kShown = {{"gpu_util_pct", "gpu_util_pct"},
                                                   {"sm_active_pct", "sm_active_pct"},
                                                   {"mem_used_mib", "mem_used_mib"},
                                                   {"power_w", "power_w"},
                                                   {"temp_c", "temp_c"},
                                                   {"host_cpu_pct", "host_cpu_pct"},
                                                   {"host_mem_used_mib", "host_mem_used_mib"},
                                                   {"job_cpu_cores", "job_cpu_cores"},
                                                   {"GPU_Utilization", "gpu_util_pct"},
                                                   {"Memory_Used", "mem_used_mib"},
                                                   {"Power_Draw", "power_w"},
                                                   {"Temperature", "temp_c"},
                                                   {"Tokens_Per_Second", "tokens_per_second"},
                                                   {"Running", "requests_running"},
                                                   {"Waiting", "requests_waiting"},
                                                   {"KV_Use", "kv_use"}};
const std::set<std::string> kOfEngines = {"tokens_per_second", "requests_running",
                                          "requests_waiting", "kv_use"};

}  // namespace

void DeviceCurves::forget() { *this = {}; }

void DeviceCurves::add_line(const std::string& line) {
  const std::optional<telemetry::DeviceRow> row = rows_.read(line);
  if (!row) return;
  if (begin_ns_ < 0) begin_ns_ = row->wall_ns;
  if (host_.empty()) host_ = row->host;
  for (const auto& [column, value] : row->values) {
    const auto shown = kShown.find(column);
    if (shown == kShown.end()) continue;
    const std::string& name = shown->second;
    curves_[(kOfEngines.contains(name) ? "host" : row->device) + "/" + name].add(
        (row->wall_ns - begin_ns_) / 1'000'000, value);
  }
}

}  // namespace convoy::page
