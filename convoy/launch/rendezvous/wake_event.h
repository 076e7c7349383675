// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that one thread makes readable for another.
#pragma once

#include "convoy/core/base/descriptor.h"

namespace convoy::rendezvous {

class WakeEvent {
 public:
  WakeEvent();  // throws IoError
  int descriptor() const { return event_.get(); }
  void set() const;  // readable until clear(). Thread-safe
  void clear() const;

 private:
  Descriptor event_;
};

}  // namespace convoy::rendezvous
