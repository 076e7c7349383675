// SPDX-License-Identifier: Apache-2.0
//
// fmt's own functions, for every unit that includes its headers: compiled here as the header-only
// library has them, with those kept that nothing here calls (CMakeLists.txt).
#include <fmt/format.h>
