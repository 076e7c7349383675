// SPDX-License-Identifier: Apache-2.0
//
// The devices whose tensors take the ops of CUDA tensors: GPUs, and a device that counts the work
// of one.
#pragma once

#include <c10/core/Device.h>

namespace convoy::kernels {

bool takes_cuda_ops(at::Device device);

// From here on tensors of LibTorch's PrivateUse1 take the ops of CUDA tensors: for a device that
// counts the work of a GPU (machine/counting). Launches: take_launches() in cuda/launch.h.
void use_cuda_ops_on_private_device();

}  // namespace convoy::kernels
