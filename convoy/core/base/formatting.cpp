// SPDX-License-Identifier: Apache-2.0
//
// Compiles fmt's own functions once, for all units that include its headers: only this unit uses
// fmt as a header-only library. Functions that are not called here are kept too (see
// CMakeLists.txt).
#include <fmt/format.h>
