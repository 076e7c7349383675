// SPDX-License-Identifier: Apache-2.0
//
// The functions of the fmt that LibTorch brings, for every unit that sees LibTorch's headers:
// core/base/formatting.cpp does the same for the system's fmt, which is of another version.
#include <fmt/format.h>
