// SPDX-License-Identifier: Apache-2.0
//
// Ops without a kernel for the device run the CPU's kernel on device memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace convoy::simulated {

void run_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace convoy::simulated
