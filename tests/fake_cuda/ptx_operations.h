// SPDX-License-Identifier: Apache-2.0
//
// Finds the effect of each supported PTX instruction.
#pragma once

#include <string>

#include "fake_cuda/ptx_program.h"

namespace convoy::testing {

// Finds an operation by its full name, such as "fma.rn.f32". Returns null for an unknown name.
PtxInstruction::Run ptx_operation(const std::string& name, PtxResults results);

}  // namespace convoy::testing
