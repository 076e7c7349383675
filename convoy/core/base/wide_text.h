// SPDX-License-Identifier: Apache-2.0
//
// Recognises text files in UTF-16 and UTF-32, as Windows programs save them.
#pragma once

#include <filesystem>
#include <string_view>

namespace convoy {

// The name in iconv of the encoding of a file that begins with `head`, recognised by its byte order
// mark or by a zero in every other byte. Empty for other files.
std::string_view wide_encoding(std::string_view head);

// Throws DataError if wide_encoding() has a name for the bytes; its hint is the command that
// converts the file.
void refuse_wide_text(std::string_view head, const std::filesystem::path& file);

}  // namespace convoy
