// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

size_t cudnnGetVersion(void) { return 91900; }  // 9.19.0
