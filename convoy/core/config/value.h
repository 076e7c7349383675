// SPDX-License-Identifier: Apache-2.0
//
// Sets the member behind a field from a YAML node or a text, and checks the value's type and
// bounds.
#pragma once

#include <string>

#include "convoy/core/config/document.h"
#include "convoy/core/config/field_list.h"

namespace convoy::config {

// `path` names the key in messages. Lists of numbers and of fixed words may be one text, "a, b".
// Throws ConfigError with the expected kind, the value found and its place.
void set_value(const Field& field, const Node& node, const std::string& path);

// Checks the current value against the field's bounds and choices. Throws ConfigError.
void check_bounds(const Field& field, const Node& node, const std::string& path);

// "integer", "number or auto", "list of text", ...
std::string value_kind(const Field& field);

// "at least 1", "one of a, b"; empty when there is no bound.
std::string value_bounds(const Field& field);

}  // namespace convoy::config
