// SPDX-License-Identifier: Apache-2.0
//
// Unpredictable bytes from the kernel.
#pragma once

#include <cstddef>
#include <string>

namespace convoy {

std::string random_bytes(size_t count);  // throws IoError

}  // namespace convoy
