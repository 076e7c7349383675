// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/peak_meter.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <chrono>

#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/tensor_memory.h"

namespace convoy::device {
namespace {

// Device memory that the allocator holds, used or kept.
c10::CachingAllocator::Stat reserved(at::Device device) {
  return at::getDeviceAllocator(device.type())
      ->getDeviceStats(device.index())
      .reserved_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

}  // namespace

int64_t owned_memory_bytes(at::Device device) {
  return device.is_cpu() ? process_memory().owned_bytes : reserved(device).current;
}

PeakMeter::PeakMeter(at::Device device) : device_(device) {
  if (!device.is_cpu()) {
    at::getDeviceAllocator(device.type())->emptyCache();
    at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
    return;
  }
  forget_kept_tensor_memory();
  reset_peak_memory();
  most_owned_bytes_ = owned_memory_bytes(device);
  thread_ = std::thread([this] {
    while (!stopped_.load()) {
      look();
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  });
}

void PeakMeter::look() {
  most_owned_bytes_ = std::max(most_owned_bytes_, owned_memory_bytes(device_));
}

PeakMemory PeakMeter::stop() {
  if (!device_.is_cpu()) return {reserved(device_).peak, rank_memory(device_).peak_bytes};
  stopped_ = true;
  thread_.join();
  look();
  return {most_owned_bytes_, process_memory().peak_resident_bytes};
}

PeakMeter::~PeakMeter() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace convoy::device
