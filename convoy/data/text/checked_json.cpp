// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/checked_json.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_reason.h"

namespace convoy::text {

nlohmann::ordered_json parse_checked_json(std::string_view text,
                                          const std::filesystem::path& file) {
  if (nested_deeper(text))
    throw DataError(fmt::format("JSON is nested more than {} levels deep", kMostJsonLevels),
                    {.file = file.string(), .hint = "the file is damaged or cut: get it again"});
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not valid JSON: {}", json_reason(error.what())),
                    {.file = file.string(), .hint = "the file is damaged or cut: get it again"});
  }
}

}  // namespace convoy::text
