// SPDX-License-Identifier: Apache-2.0
//
// JSON of tokenizer folders, which is untrusted.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace convoy::text {

constexpr int64_t kMaxTokenId = (1 << 24) - 1;

// Parses JSON of at most 256 levels. Throws DataError naming `file`.
nlohmann::ordered_json parse_checked_json(std::string_view text, const std::filesystem::path& file);

}  // namespace convoy::text
