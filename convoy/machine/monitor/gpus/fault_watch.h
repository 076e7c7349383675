// SPDX-License-Identifier: Apache-2.0
//
// Waits on a thread of its own for faults of GPUs: faults that the driver reports (Xids), and GPUs
// that disappear without a report.
//
//   FaultWatch watch(sources, host, uuids);
//   watch.begin_attempt();  ...  poll watch.descriptor();
//   for (const DeviceFault& fault : watch.take()) ...
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/machine/monitor/gpus/devices.h"
#include "convoy/machine/monitor/gpus/nvml.h"
#include "convoy/machine/monitor/gpus/xid.h"

namespace convoy::monitor {

struct DeviceFault {
  std::vector<std::string> uuids = {};  // the watched devices that have the fault
  std::optional<uint64_t> xid = {};     // nothing: the GPU is lost
  XidSeverity severity = XidSeverity::Fatal;
  // "node3: gpu2 (NVIDIA H100, 0000:34:00.0): Xid 79, the GPU has fallen off the bus".
  std::string sentence = {};
  std::string to_do = {};
};

class FaultWatch {
 public:
  // `uuids`: GPUs to watch, or MIG instances whose GPU is watched. The thread opens NVML; without
  // NVML it finds nothing.
  FaultWatch(const DeviceSources& sources, std::string host, std::set<std::string> uuids);
  ~FaultWatch();  // blocks for up to 0.1 s, and while a call of the driver runs
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

  // Asks the thread to end. False: a call of the driver has not returned within `limit`, so this
  // object must not be destroyed. Blocks.
  bool ends_within(std::chrono::milliseconds limit);
  // Drops faults that take() has not returned: they belong to an earlier attempt. A GPU that is
  // still lost is reported again.
  void begin_attempt();
  int descriptor() const { return news_.get(); }  // readable when take() has something
  // The new faults. A fault that is not fatal is reported once per GPU and Xid, however often it
  // occurs.
  std::vector<DeviceFault> take();

 private:
  struct Watched {
    Device device;  // a whole GPU
    void* handle = nullptr;
    std::map<int, std::string> instances = {};  // by GPU instance: watched MIG instances
    bool is_watched_itself = false;
    bool is_lost = false;
  };

  void watch();
  void find_devices(const Nvml& nvml);
  void* register_events(const nvml::Calls& call) const;
  void wait_for_event(const nvml::Calls& call, void* events);
  void look_for_lost(const Nvml& nvml);
  void tell_xid(const Watched& watched, const nvml::Event& event);
  void tell_lost(Watched& watched, const std::string& reason);
  void tell(DeviceFault fault);
  bool is_stopping();

  DeviceSources sources_;
  std::string host_;
  std::set<std::string> uuids_;
  std::vector<Watched> watched_;  // used by the thread only
  unsigned num_gpus_ = 0;         // used by the thread only: GPUs that the driver counted at first
  Descriptor news_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool ended_ = false;
  bool tells_losses_again_ = false;
  std::vector<DeviceFault> faults_;
  std::set<std::pair<std::string, uint64_t>> told_;  // non-fatal faults, by UUID and Xid
  std::thread thread_;
};

}  // namespace convoy::monitor
