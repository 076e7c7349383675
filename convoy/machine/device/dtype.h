// SPDX-License-Identifier: Apache-2.0
//
// Names of element types in settings, stamps and messages.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

namespace convoy::device {

// "fp32", "bf16" or "fp16". Throws ConfigError for anything else.
at::ScalarType parse_dtype(std::string_view name);

// The inverse of parse_dtype(). Other element types get LibTorch's own name ("Long", "Double").
std::string dtype_name(at::ScalarType dtype);

}  // namespace convoy::device
