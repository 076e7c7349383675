// SPDX-License-Identifier: Apache-2.0
//
// Unpredictable bytes from the kernel.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy::rendezvous {

std::string random_bytes(size_t count);  // throws IoError
std::string hex_text(std::string_view bytes);

}  // namespace convoy::rendezvous
