// SPDX-License-Identifier: Apache-2.0
//
// Reserves a GPU for one engine of this host, because an engine fills the GPU's memory.
#pragma once

#include <c10/core/Device.h>

#include "convoy/core/base/descriptor.h"

namespace convoy::device {

// The claim holds until the object is destroyed or this process ends.
struct DeviceClaim {
  Descriptor held;         // closed for the CPU, which is shared, and when `is_taken`
  bool is_taken = false;   // another engine has the device
  int holder_process = 0;  // process that has the device; 0 = unknown
};

// A device is identified by its UUID, whatever its number in this process. A simulated device is
// identified by process and number.
DeviceClaim claim_device(at::Device device);

}  // namespace convoy::device
