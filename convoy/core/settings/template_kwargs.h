// SPDX-License-Identifier: Apache-2.0
//
// Variables that a user gives to the chat template: `data.template_kwargs`, --template-kwargs, and
// a row's `chat_template_kwargs`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/core/config/field.h"

namespace convoy::settings {

// Why these variables can not be given, or nothing: a name that is not the user's to set, `tools`
// that are no list, `documents` that are no list of objects.
std::optional<std::string> template_kwargs_problem(const nlohmann::ordered_json& kwargs);

// The variables of a whole run; `key` is how the user spelt the setting. Throws ConfigError.
nlohmann::ordered_json template_kwargs(const config::JsonMap& given, const std::string& key);

}  // namespace convoy::settings
