// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/device_scalars.h"

#include <array>
#include <string>

namespace convoy::monitor {
namespace {

struct GpuCurve {
  Metric metric;
  const char* name;  // gpu/0/NAME
  const char* title;
};
constexpr std::array<GpuCurve, 6> kGpuCurves = {
    {{Metric::GpuUtil, "utilization", "GPUs: a kernel was resident (%)"},
     {Metric::SmActive, "sm_active", "GPUs: multiprocessors at work (%)"},
     {Metric::MemUsed, "memory_used", "GPUs: memory held (MiB)"},
     {Metric::Power, "power", "GPUs: power (W)"},
     {Metric::Temperature, "temperature", "GPUs: temperature (C)"},
     {Metric::SmClock, "sm_clock", "GPUs: clock (MHz)"}}};

struct HostCurve {
  HostMetric metric;
  const char* tag;
};
constexpr std::array<HostCurve, 7> kHostCurves = {{{HostMetric::CpuBusy, "cpu/busy"},
                                                   {HostMetric::JobCores, "cpu/job_cores"},
                                                   {HostMetric::JobMem, "cpu/job_memory"},
                                                   {HostMetric::MemUsed, "cpu/memory_used"},
                                                   {HostMetric::MemRead, "cpu/memory_read"},
                                                   {HostMetric::MemWritten, "cpu/memory_written"},
                                                   {HostMetric::Load, "cpu/load"}}};

std::vector<telemetry::ScalarChart> charts() {
  std::vector<telemetry::ScalarChart> all;
  for (const GpuCurve& curve : kGpuCurves)
    all.push_back({curve.title, {fmt::format(R"(gpu/\d+(/mig\d+)?/{})", curve.name)}});
  all.push_back({"CPUs: all (%)", {"cpu/busy"}});
  all.push_back({"CPUs: cores that the job used", {"cpu/job_cores"}});
  all.push_back({"host: memory traffic (MiB/s)", {"cpu/memory_(read|written)"}});
  all.push_back({"host: memory held (MiB)", {"cpu/(job_memory|memory_used)"}});
  return all;
}

// Returns "gpu/0" or "gpu/0/mig1".
std::string place_of(const DeviceReading& device) {
  return device.mig ? fmt::format("gpu/{}/mig{}", device.index, device.gpu_instance)
                    : fmt::format("gpu/{}", device.index);
}

}  // namespace

void DeviceScalars::begin(int64_t step) {
  writer_.emplace(folder_, log_, step);
  writer_->add_layout("Devices", charts());
}

void DeviceScalars::add(const MachineReading& reading, int64_t step) {
  if (!writer_) return;
  const double seconds = static_cast<double>(reading.wall_ns) * 1e-9;
  for (const DeviceReading& device : reading.devices)
    for (const GpuCurve& curve : kGpuCurves)
      if (const auto& value = device.values[curve.metric])
        writer_->add_scalar(fmt::format("{}/{}", place_of(device), curve.name), step, *value,
                            seconds);
  for (const HostCurve& curve : kHostCurves)
    if (const auto& value = reading.host[curve.metric])
      writer_->add_scalar(curve.tag, step, *value, seconds);
}

}  // namespace convoy::monitor
