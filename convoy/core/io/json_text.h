// SPDX-License-Identifier: Apache-2.0
//
// JSON from untrusted files: limits are checked while parsing, before any recursive code sees the
// text.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace convoy::io {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  int64_t max_bytes = int64_t{64} << 20;
  int64_t max_depth = 256;
  int64_t max_values = 4'000'000;
};

// Refuses invalid UTF-8, NUL bytes, duplicate keys, trailing text and anything beyond `limits`.
// `place` names the source in messages. Linear in the size of the text. Throws DataError.
Json parse_json(std::string_view text, const std::string& place, const JsonLimits& limits = {});
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

// The value for a message, cut to a bounded length.
std::string shown(const Json& value);

// Indent 2, keys sorted, a final newline when `newline`: as Python's json.dumps(indent=2,
// sort_keys=True, ensure_ascii=false) writes it.
std::string sorted_json_text(const nlohmann::json& value, bool newline);

}  // namespace convoy::io
