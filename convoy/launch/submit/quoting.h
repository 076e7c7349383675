// SPDX-License-Identifier: Apache-2.0
//
// Words that another program reads back exactly: for a POSIX shell and for YAML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/shell_word.h"

namespace convoy::launch {

using ::convoy::shell_word;
std::string shell_words(const std::vector<std::string>& words);

// Block style, keys in the order of `document`, a string quoted wherever a reader of YAML 1.1 or
// 1.2 could take it for something else. Strings must be UTF-8; throws ConfigError otherwise.
std::string yaml_text(const nlohmann::ordered_json& document);

}  // namespace convoy::launch
