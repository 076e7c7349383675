// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy {

// Units of an x86 CPU that multiply tiles of bf16 (AMX), many times faster than loops over vectors.
bool has_matrix_units();

}  // namespace convoy
