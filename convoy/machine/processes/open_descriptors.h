// SPDX-License-Identifier: Apache-2.0
//
// The open descriptors of this process.
#pragma once

namespace convoy::processes {

// Closes every descriptor but `kept`: for a child that must not keep open what its parent had.
// Where the kernel has no close_range (before Linux 5.9) or a seccomp profile refuses it, they are
// closed one by one.
void close_all_but(int kept);

}  // namespace convoy::processes
