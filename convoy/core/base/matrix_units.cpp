// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/matrix_units.h"

namespace convoy {

bool has_matrix_units() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

}  // namespace convoy
