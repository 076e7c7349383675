// SPDX-License-Identifier: Apache-2.0
//
// A piece of work of a device: it begins on the device's current stream, lists all memory that it
// uses, and runs at once on this thread.
#pragma once

#include <vector>

#include "simulated_device/allocators.h"
#include "simulated_device/machine.h"

namespace convoy::simulated {

class Work {
 public:
  // Throws if a use is in no order with earlier work.
  Work(c10::Device device, const std::vector<Use>& uses)
      : stream_(current_stream(device.index())),
        moment_(machine().submit(stream_, uses)),
        memory_(device.index()) {}

  c10::Stream stream() const { return stream_; }
  const Moment& moment() const { return moment_; }

 private:
  c10::Stream stream_;
  Moment moment_;
  KernelMemory memory_;
};

}  // namespace convoy::simulated
