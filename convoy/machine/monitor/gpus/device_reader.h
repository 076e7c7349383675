// SPDX-License-Identifier: Apache-2.0
//
// Reads the current load of this host's GPUs. A metric that a driver refuses
// for a device is not read again, and its reason is kept. The other metrics are still read.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/machine/monitor/gpus/metrics.h"
#include "convoy/machine/monitor/gpus/nvml.h"

namespace convoy::monitor {

struct DeviceReading {
  int index = -1;  // NVML's index of the GPU
  std::string name = {};
  std::string uuid = {};
  std::string pci_address = {};
  bool mig = false;
  int gpu_instance = -1;  // for a MIG instance
  MetricValues values = {};
  std::optional<unsigned long long> throttle_reasons = {};  // NVML's bits
  std::vector<uint64_t> xids = {};  // faults that the driver reported since the previous reading
  std::string problem = {};         // why nothing is known now: "GPU is lost"; empty = it answers

  std::string label() const;  // "gpu0"; "gpu0/mig1" for an instance
};

struct MetricGap {
  std::string device;  // DeviceReading::label()
  std::string metric;  // MetricFacts::name, "throttle" or "xid"
  std::string reason;
};

// Keeps NVML open: opening costs tens of milliseconds, a reading a few. One thread.
class DeviceReader {
 public:
  // `uuids`: only these devices, and the instances of these GPUs; nothing = all.
  explicit DeviceReader(const DeviceSources& sources = {},
                        std::optional<std::set<std::string>> uuids = {});
  ~DeviceReader();

  // Empty without GPUs. A device that was there at the start stays in the list when it is lost.
  // Never throws.
  std::vector<DeviceReading> read();

  const std::string& problem() const { return problem_; }  // why there is no GPU
  // The driver was updated under a running kernel module.
  bool is_mismatched() const { return nvml_->is_mismatched(); }
  std::vector<Nvml::Broken> broken() const { return nvml_->broken(); }
  NvmlVersions versions() const { return nvml_ ? nvml_->versions() : NvmlVersions{}; }
  std::vector<Device> devices() const;
  std::vector<MetricGap> gaps() const;  // known so far: complete after two readings

 private:
  struct Slot;  // one device
  class SlotReading;

  void open_slots();
  void close_slots();
  void read_amd(std::vector<DeviceReading>& readings);
  void take_events(std::vector<DeviceReading>& readings);
  void try_again();

  DeviceSources sources_;
  std::optional<std::set<std::string>> uuids_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Device> amd_;
  void* events_ = nullptr;
  std::string problem_;
  // NVML is opened again when no device answers, after longer and longer pauses.
  std::chrono::steady_clock::time_point next_try_ = {};
  std::chrono::seconds pause_{2};
};

}  // namespace convoy::monitor
