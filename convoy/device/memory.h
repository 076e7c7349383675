// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process as the kernel counts it.
#pragma once

#include <cstdint>

namespace convoy::device {

struct ProcessMemory {
  int64_t resident_bytes = 0;
  int64_t peak_resident_bytes = 0;  // since the start or the last reset_peak_memory()
};

// Zeros where /proc is not readable.
ProcessMemory process_memory();

// Starts the peak anew at the present size. Returns false where the kernel does not allow it.
bool reset_peak_memory();

}  // namespace convoy::device
