// SPDX-License-Identifier: Apache-2.0
//
// Sets system prompts of rows in place: all other columns and turns stay unchanged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::data {

enum class SystemMode {
  Missing,  // only in rows without a system prompt
  Replace,
  Prepend,  // before the present prompt, with an empty line between them
  Append,
  Remove,
};

SystemMode system_mode_named(std::string_view name);  // "missing", ... Throws ConfigError

// Supports messages, sharegpt, prompt_completion (with messages), triple and loose rows. Throws
// DataError for rows of other schemas.
nlohmann::ordered_json with_system_prompt(const Row& row, Schema schema, std::string_view prompt,
                                          SystemMode mode);

}  // namespace convoy::data
