// SPDX-License-Identifier: Apache-2.0
//
// Names that only one process of a host can hold at a time. They are abstract Unix sockets, so
// nothing is left when the process ends, in whatever way. A container with its own network has its
// own set of names.
#pragma once

#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy {

// Returns a descriptor that holds the name until the descriptor is closed or this process ends. The
// descriptor is not open when the name is held already. Throws IoError when the host has no such
// names.
Descriptor hold_name(const std::string& name);

// The number of the process that holds the name; 0 = no process, or one in another container.
int holder_of_name(const std::string& name);

}  // namespace convoy
