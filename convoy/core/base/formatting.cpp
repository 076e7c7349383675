// SPDX-License-Identifier: Apache-2.0
//
// fmt's own functions, compiled once for all units that include its headers, as in the header-only
// library. Functions that are not called here are kept too (see CMakeLists.txt).
#include <fmt/format.h>
