// SPDX-License-Identifier: Apache-2.0
//
// Sizes of memory and files in messages.
#pragma once

#include <cstdint>
#include <string>

namespace convoy {

// "512 B", "12 KiB", "812 MiB", "3.41 GiB". Only 0 bytes are shown as zero.
std::string bytes_text(int64_t bytes);

}  // namespace convoy
