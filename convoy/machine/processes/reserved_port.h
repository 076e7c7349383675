// SPDX-License-Identifier: Apache-2.0
//
// A TCP port that this process keeps for its ranks. The program that will listen on it opens the
// port itself, so it cannot be held open here; instead its number is reserved among all jobs of
// this network namespace by an abstract socket name, which the kernel frees when this process ends,
// however it ends. Numbers lie below the range from which the kernel takes ports for outgoing
// connections and for binds to port 0. Port 29500 is never reserved: jobs of several nodes and
// torchrun listen on it unless they are given another port.
#pragma once

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

class ReservedPort {
 public:
  // Reserves a free port. Throws IoError when there is none.
  ReservedPort();
  // Reserves a free port from `lowest` to `highest`, both included.
  ReservedPort(int lowest, int highest);
  int number() const { return number_; }

 private:
  int number_ = 0;
  Descriptor claim_;
};

// True when nothing on this host listens on or is bound to the port, on any address.
bool port_is_free(int number);

}  // namespace convoy::processes
