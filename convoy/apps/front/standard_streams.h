// SPDX-License-Identifier: Apache-2.0
//
// stdin, stdout and stderr as this process may find them: closed, full, or with nobody at the other
// end.
#pragma once

#include <string_view>

namespace convoy::apps {

// Opens /dev/null for each of the three that is closed: else the next file that is opened has its
// number, and words for a person go there. Call first.
void open_standard_streams();

// All of it, or as much as stderr takes. A stderr that fails is no reason to end in another way
// than with the exit code.
void write_to_stderr(std::string_view text);

}  // namespace convoy::apps
