// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "convoy/core/base/usable_memory.h"

namespace convoy::device {
namespace {

std::pair<int64_t, int64_t> free_and_all_bytes(at::Device device) {
  try {
    return at::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
  } catch (const c10::Error&) {
    return {0, 0};  // this allocator does not report it
  }
}

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int64_t* const field = line.starts_with("VmRSS:")      ? &memory.resident_bytes
                           : line.starts_with("VmHWM:")    ? &memory.peak_resident_bytes
                           : line.starts_with("RssAnon:")  ? &memory.owned_bytes
                           : line.starts_with("RssShmem:") ? &memory.owned_bytes
                                                           : nullptr;
    if (field == nullptr) continue;
    int64_t kibibytes = 0;
    std::istringstream(line.substr(line.find(':') + 1)) >> kibibytes;
    *field += kibibytes * 1024;
  }
  return memory;
}

RankMemory rank_memory(at::Device device) {
  if (device.is_cpu()) {
    const ProcessMemory process = process_memory();
    return {.held_bytes = process.resident_bytes, .peak_bytes = process.peak_resident_bytes};
  }
  const c10::CachingDeviceAllocator::DeviceStats figures =
      at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  const auto of_all =
      figures.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  const auto reserved =
      figures.reserved_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  return {of_all.current, of_all.peak, reserved.current};
}

int64_t usable_rank_memory_bytes(at::Device device, int ranks_on_host) {
  if (device.is_cpu()) return usable_memory_bytes() / ranks_on_host;
  return free_and_all_bytes(device).first;
}

int64_t device_memory_bytes(at::Device device) {
  return device.is_cpu() ? 0 : free_and_all_bytes(device).second;
}

void release_kept_memory(at::Device device) {
  if (!device.is_cpu()) at::getDeviceAllocator(device.type())->emptyCache();
}

bool reset_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";  // proc(5): resets VmHWM
  file.flush();
  return file.good();
}

}  // namespace convoy::device
