// SPDX-License-Identifier: Apache-2.0
//
// Exceptions of LibTorch, CUDA and the C++ library in Convoy's words.
#pragma once

#include <exception>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::recipes {

// Memory and what else the system refuses (12), the device (14), a setting (2), or a bug (70).
// `memory_hint`: what to lower.
Error fault_of(const std::exception& error, const std::string& memory_hint);

}  // namespace convoy::recipes
