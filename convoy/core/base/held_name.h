// SPDX-License-Identifier: Apache-2.0
//
// Names that one process of a host holds at a time, as abstract Unix sockets: nothing is left when
// the process ends in whatever way. Containers with a network of their own have own names.
#pragma once

#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy {

// Held until it is closed or this process ends. Closed where it is held already. Throws IoError
// where the host has no such names.
Descriptor hold_name(const std::string& name);

// The process that holds it; 0 = none, or one of another container.
int holder_of_name(const std::string& name);

}  // namespace convoy
