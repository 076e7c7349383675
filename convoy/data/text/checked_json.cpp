// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/checked_json.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_reason.h"

namespace convoy::text {
namespace {

constexpr int kMaxDepth = 256;

void check_depth(std::string_view text, const std::filesystem::path& file) {
  int depth = 0;
  int64_t line = 1;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '\n') ++line;
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > kMaxDepth)
        throw DataError(fmt::format("JSON is nested more than {} levels deep", kMaxDepth),
                        {.file = file.string(), .line = line});
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
}

}  // namespace

nlohmann::ordered_json parse_checked_json(std::string_view text,
                                          const std::filesystem::path& file) {
  check_depth(text, file);
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not valid JSON: {}", json_reason(error.what())),
                    {.file = file.string()});
  }
}

}  // namespace convoy::text
