// SPDX-License-Identifier: Apache-2.0
//
// Turns exceptions of LibTorch, CUDA and the C++ library into Convoy's errors.
#pragma once

#include <exception>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::recipes {

// The Error for an exception, with the exit code of its cause: memory and other refusals of the
// system (12), the device (14), a setting (2), or a bug (70). `memory_hint`: the settings to lower.
Error fault_of(const std::exception& error, const std::string& memory_hint);

}  // namespace convoy::recipes
