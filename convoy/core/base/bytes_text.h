// SPDX-License-Identifier: Apache-2.0
//
// Sizes of memory and files in messages.
#pragma once

#include <cstdint>
#include <string>

namespace convoy {

// "512 B", "12 KiB", "812 MiB", "3.41 GiB": no size but 0 reads as nothing.
std::string bytes_text(int64_t bytes);

}  // namespace convoy
