// SPDX-License-Identifier: Apache-2.0
//
// What a tokenizer.json must satisfy before the Rust library reads it: that library allocates by the largest id and drops
// in silence what a vocabulary lacks.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace convoy::text {

constexpr int64_t kMaxTokenizerBytes = int64_t{128} << 20;
constexpr int64_t kMaxTokenId = (1 << 24) - 1;

// Parses untrusted JSON: at most 256 levels deep. Throws DataError naming `file`.
nlohmann::json parse_checked_json(std::string_view text, const std::filesystem::path& file);
nlohmann::ordered_json parse_checked_ordered_json(std::string_view text,
                                                  const std::filesystem::path& file);

// Throws DataError naming `file` and the JSON path at fault.
void check_tokenizer_json(const nlohmann::json& tokenizer, const std::filesystem::path& file);

}  // namespace convoy::text
