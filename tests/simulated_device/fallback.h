// SPDX-License-Identifier: Apache-2.0
//
// Ops without a kernel for the device run the kernel of the CPU, over device memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace convoy::simulated {

void run_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace convoy::simulated
