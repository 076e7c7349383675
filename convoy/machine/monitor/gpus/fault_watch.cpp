// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/gpus/fault_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "convoy/core/base/quiet_thread.h"

namespace convoy::monitor {
namespace {

using Clock = std::chrono::steady_clock;

// The longest time by which a wait for an event delays the end of the job.
constexpr std::chrono::milliseconds kEventWait{100};
// A GPU may be lost without an Xid, so GPUs are queried too, which takes some microseconds a GPU.
constexpr std::chrono::milliseconds kBetweenLooks{1'000};
constexpr unsigned kNoInstance = ~0U;  // for an event of the whole GPU

}  // namespace

FaultWatch::FaultWatch(const DeviceSources& sources, std::string host, std::set<std::string> uuids)
    : sources_(sources),
      host_(std::move(host)),
      uuids_(std::move(uuids)),
      news_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  thread_ = quiet_thread([this] {
    watch();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  });
}

FaultWatch::~FaultWatch() {
  ends_within({});
  thread_.join();
}

bool FaultWatch::ends_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  return wake_.wait_for(lock, limit, [this] { return ended_; });
}

void FaultWatch::begin_attempt() {
  take();
  const std::lock_guard lock(mutex_);
  tells_losses_again_ = true;
}

std::vector<DeviceFault> FaultWatch::take() {
  uint64_t ignored = 0;
  [[maybe_unused]] const auto count = ::read(news_.get(), &ignored, sizeof(ignored));
  const std::lock_guard lock(mutex_);
  return std::exchange(faults_, {});
}

bool FaultWatch::is_stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void FaultWatch::watch() {
  const Nvml nvml(sources_.nvml_library);
  if (!nvml.problem().empty()) return;
  find_devices(nvml);
  if (watched_.empty()) return;
  const nvml::Calls& call = nvml.calls();
  void* const events = register_events(call);
  Clock::time_point next_look = Clock::now();
  while (!is_stopping()) {
    if (Clock::now() >= next_look) {
      look_for_lost(nvml);
      next_look = Clock::now() + kBetweenLooks;
    }
    wait_for_event(call, events);
  }
  if (events != nullptr && call.event_set_free != nullptr) call.event_set_free(events);
}

// Events of a MIG instance are reported for its GPU.
void FaultWatch::find_devices(const Nvml& nvml) {
  nvml.calls().count(&num_gpus_);
  std::map<void*, Watched> by_handle;
  for (const Nvml::Handle& known : nvml.handles()) {
    void* const gpu = known.parent == nullptr ? known.handle : known.parent;
    Watched& watched = by_handle[gpu];
    watched.handle = gpu;
    if (known.parent == nullptr) watched.device = known.device;
    if (!uuids_.contains(known.device.uuid)) continue;
    if (known.parent == nullptr)
      watched.is_watched_itself = true;
    else
      watched.instances[known.device.gpu_instance] = known.device.uuid;
  }
  for (auto& [handle, watched] : by_handle)
    if (watched.is_watched_itself || !watched.instances.empty())
      watched_.push_back(std::move(watched));
}

void* FaultWatch::register_events(const nvml::Calls& call) const {
  void* events = nullptr;
  if (call.event_set_create == nullptr || call.register_events == nullptr ||
      call.event_wait == nullptr || call.event_set_create(&events) != nvml::kSuccess)
    return nullptr;
  for (const Watched& watched : watched_)
    call.register_events(watched.handle, nvml::kXidEvent, events);
  return events;
}

void FaultWatch::wait_for_event(const nvml::Calls& call, void* events) {
  nvml::Event event{};
  const auto limit_ms = static_cast<unsigned>(kEventWait.count());
  const Clock::time_point begin = Clock::now();
  if (events != nullptr && call.event_wait(events, &event, limit_ms) == nvml::kSuccess) {
    if (event.kind != nvml::kXidEvent) return;
    for (const Watched& watched : watched_)
      if (watched.handle == event.device) tell_xid(watched, event);
    return;
  }
  // A driver that has no events, or refuses them at once, must not keep a CPU busy.
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, begin + kEventWait, [this] { return stopping_; });
}

// "Unknown Error" and "Uninitialized" do not count as a loss: a container whose device cgroup was
// changed gets them while its programs compute on.
void FaultWatch::look_for_lost(const Nvml& nvml) {
  const nvml::Calls& call = nvml.calls();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(tells_losses_again_, false))
      for (Watched& watched : watched_) watched.is_lost = false;
  }
  for (Watched& watched : watched_) {
    nvml::MemoryInfo memory{};
    const int code = call.memory_info(watched.handle, &memory);
    if (code == nvml::kGpuIsLost || code == nvml::kResetRequired)
      tell_lost(watched, call.error(code));
  }
  unsigned count = 0;
  if (call.count(&count) != nvml::kSuccess || count >= num_gpus_) return;
  std::set<std::string> there;
  for (const Nvml::Handle& known : nvml.handles()) there.insert(known.device.uuid);
  for (Watched& watched : watched_)
    if (!there.contains(watched.device.uuid))
      tell_lost(watched, fmt::format("the driver lists {} GPUs, {} before", count, num_gpus_));
}

void FaultWatch::tell_xid(const Watched& watched, const nvml::Event& event) {
  const XidFacts facts = xid_facts(event.data);
  DeviceFault fault{.xid = event.data, .severity = facts.severity, .to_do = facts.to_do};
  if (watched.is_watched_itself) fault.uuids.push_back(watched.device.uuid);
  for (const auto& [instance, uuid] : watched.instances)
    if (event.gpu_instance == kNoInstance || static_cast<int>(event.gpu_instance) == instance)
      fault.uuids.push_back(uuid);
  if (fault.uuids.empty()) return;  // the fault is in an instance that others compute on
  fault.sentence =
      fmt::format("{}: gpu{} ({}, {}): Xid {}, {}", host_, watched.device.gpu, watched.device.name,
                  watched.device.pci_address, event.data, facts.meaning);
  {
    const std::lock_guard lock(mutex_);
    if (facts.severity != XidSeverity::Fatal &&
        !told_.emplace(watched.device.uuid, event.data).second)
      return;
  }
  tell(std::move(fault));
}

void FaultWatch::tell_lost(Watched& watched, const std::string& reason) {
  if (std::exchange(watched.is_lost, true)) return;
  DeviceFault fault{.to_do = "look at dmesg, then reset the GPU or reboot the host"};
  if (watched.is_watched_itself) fault.uuids.push_back(watched.device.uuid);
  for (const auto& [instance, uuid] : watched.instances) fault.uuids.push_back(uuid);
  fault.sentence = fmt::format("{}: gpu{} ({}, {}) is lost: {}", host_, watched.device.gpu,
                               watched.device.name, watched.device.pci_address, reason);
  tell(std::move(fault));
}

void FaultWatch::tell(DeviceFault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
  const uint64_t one = 1;
  [[maybe_unused]] const auto count = ::write(news_.get(), &one, sizeof(one));
}

}  // namespace convoy::monitor
