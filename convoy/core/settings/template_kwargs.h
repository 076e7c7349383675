// SPDX-License-Identifier: Apache-2.0
//
// Variables that a user passes to the chat template: `data.template_kwargs`, --template-kwargs, and
// a row's `chat_template_kwargs`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/core/config/field.h"

namespace convoy::settings {

// Why these variables are refused, or empty: a reserved name, `tools` that is no list, `documents`
// that is no list of objects.
std::optional<std::string> template_kwargs_problem(const nlohmann::ordered_json& kwargs);

// The variables for a whole run; `key` is the user's spelling of the setting. Throws ConfigError.
nlohmann::ordered_json template_kwargs(const config::JsonMap& given, const std::string& key);

}  // namespace convoy::settings
