// SPDX-License-Identifier: Apache-2.0
//
// CUDA's driver and LibTorch's CUDA half, opened at run time. No header of CUDA is needed to build.
#pragma once

#include <string>

namespace convoy::device {

// Opens libtorch_cuda.so, whose kernels then register themselves with LibTorch; once is enough.
// Throws DeviceError, naming what is missing and what to install.
void open_cuda_library();

// Major number of the compute capability of a device that CUDA shows; 0 = unknown to the driver.
// Call after open_cuda_library().
int cuda_compute_capability(int index);

// UUID of a device that CUDA shows, or of its part (MIG), in hexadecimal; empty = unknown to the
// driver. Call after open_cuda_library().
std::string cuda_uuid(int index);

}  // namespace convoy::device
