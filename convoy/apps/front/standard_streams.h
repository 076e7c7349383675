// SPDX-License-Identifier: Apache-2.0
//
// stdin, stdout and stderr in any state: closed, full, or with a closed reader.
#pragma once

#include <cstdint>
#include <string_view>

namespace convoy::apps {

// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise the next file
// opened would get its number, and messages would be written into it. Call it first.
void open_standard_streams();

// Writes all of the text, or as much as stderr accepts. A failing stderr does not change the exit
// code.
void write_to_stderr(std::string_view text);

}  // namespace convoy::apps
