// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/device_claim.h"

#include <unistd.h>

#include "convoy/core/base/held_name.h"
#include "convoy/machine/device/cuda_library.h"

namespace convoy::device {
namespace {

// The name to hold for the device; empty = the device needs none, or its UUID is unknown.
std::string name_of(at::Device device) {
  if (device.is_cpu()) return {};
  if (device.is_cuda()) {
    const std::string uuid = cuda_uuid(device.index());
    return uuid.empty() ? uuid : "convoy-engine-" + uuid;
  }
  return fmt::format("convoy-engine-{}-{}", device.str(), ::getpid());
}

}  // namespace

DeviceClaim claim_device(at::Device device) {
  const std::string name = name_of(device);
  if (name.empty()) return {};
  DeviceClaim claim{.held = hold_name(name)};
  claim.is_taken = !claim.held.open();
  if (claim.is_taken) claim.holder_process = holder_of_name(name);
  return claim;
}

}  // namespace convoy::device
