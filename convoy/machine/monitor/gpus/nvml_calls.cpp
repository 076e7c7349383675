// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/nvml_calls.h"

#include <dlfcn.h>

#include <type_traits>

#include "convoy/core/base/printable_text.h"

namespace convoy::monitor::nvml {

std::string Calls::load(void* library) {
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, symbol));
    return function != nullptr;
  };
  const auto need = [&](const char* symbol, auto& function) {
    if (!find(symbol, function)) missing = symbol;
  };
  need("nvmlInit_v2", init);
  need("nvmlShutdown", shutdown);
  need("nvmlErrorString", error_string);
  need("nvmlDeviceGetCount_v2", count);
  need("nvmlDeviceGetHandleByIndex_v2", handle_by_index);
  need("nvmlDeviceGetUUID", uuid);
  need("nvmlDeviceGetName", name);
  need("nvmlDeviceGetPciInfo_v3", pci_info);
  need("nvmlDeviceGetMemoryInfo", memory_info);
  find("nvmlSystemGetDriverVersion", driver_version);
  find("nvmlSystemGetNVMLVersion", nvml_version);
  find("nvmlSystemGetCudaDriverVersion_v2", cuda_version);
  find("nvmlDeviceGetMemoryInfo_v2", memory_info_2);
  find("nvmlDeviceGetUtilizationRates", utilization);
  find("nvmlDeviceGetTemperature", temperature);
  find("nvmlDeviceGetPowerUsage", power_milliwatts);
  find("nvmlDeviceGetEnforcedPowerLimit", power_limit_milliwatts);
  find("nvmlDeviceGetTotalEnergyConsumption", energy_millijoules);
  find("nvmlDeviceGetClockInfo", clock_mhz);
  find("nvmlDeviceGetPerformanceState", performance_state);
  // Drivers before 535 have the function under the second name.
  if (!find("nvmlDeviceGetCurrentClocksEventReasons", clock_event_reasons))
    find("nvmlDeviceGetCurrentClocksThrottleReasons", clock_event_reasons);
  find("nvmlDeviceGetFieldValues", field_values);
  find("nvmlDeviceGetTotalEccErrors", ecc_errors);
  find("nvmlDeviceGetRemappedRows", remapped_rows);
  find("nvmlDeviceGetComputeRunningProcesses_v3", compute_processes);
  find("nvmlDeviceGetCudaComputeCapability", compute_capability);
  find("nvmlDeviceGetMigMode", mig_mode);
  find("nvmlDeviceGetMaxMigDeviceCount", max_mig_devices);
  find("nvmlDeviceGetMigDeviceHandleByIndex", mig_handle_by_index);
  find("nvmlDeviceGetGpuInstanceId", gpu_instance_id);
  find("nvmlDeviceGetComputeInstanceId", compute_instance_id);
  find("nvmlGpmQueryDeviceSupport", gpm_support);
  find("nvmlGpmSampleAlloc", gpm_alloc);
  find("nvmlGpmSampleFree", gpm_free);
  find("nvmlGpmSampleGet", gpm_sample);
  find("nvmlGpmMigSampleGet", gpm_mig_sample);
  find("nvmlGpmMetricsGet", gpm_metrics);
  find("nvmlDeviceGetTopologyCommonAncestor", common_ancestor);
  find("nvmlDeviceGetP2PStatus", p2p_status);
  find("nvmlDeviceGetNvLinkState", link_state);
  find("nvmlDeviceGetNvLinkRemotePciInfo_v2", link_remote_pci);
  find("nvmlEventSetCreate", event_set_create);
  find("nvmlEventSetFree", event_set_free);
  find("nvmlDeviceRegisterEvents", register_events);
  find("nvmlEventSetWait_v2", event_wait);
  return missing;
}

std::string Calls::text(int (*function)(void*, char*, unsigned), void* handle) const {
  std::array<char, kTextBytes> buffer{};
  if (function(handle, buffer.data(), kTextBytes) != kSuccess) return "";
  buffer.back() = '\0';
  return printable_text(buffer.data());
}

std::string Calls::error(int code) const {
  const char* const words = error_string == nullptr ? nullptr : error_string(code);
  return words == nullptr ? "error " + std::to_string(code) : printable_text(words);
}

}  // namespace convoy::monitor::nvml
