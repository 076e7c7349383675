// SPDX-License-Identifier: Apache-2.0
//
// The effect of each supported instruction of PTX.
#pragma once

#include <string>

#include "fake_cuda/ptx_program.h"

namespace convoy::testing {

// By its full name, "fma.rn.f32". Null: not known.
PtxInstruction::Run ptx_operation(const std::string& name, PtxResults results);

}  // namespace convoy::testing
