// SPDX-License-Identifier: Apache-2.0
//
// Every op that has no kernel of the device's own runs the CPU's, over device memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace convoy::simulated {

void run_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace convoy::simulated
