// SPDX-License-Identifier: Apache-2.0
//
// JSON as people write it for DeepSpeed, which reads it with Hjson: comments (//, /* */, #),
// missing or trailing commas, unquoted words. A duplicate key is an error.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/config/document.h"

namespace convoy::config {

// `name` stands for the text in messages. Throws ConfigError with file and line. With `errors`,
// errors of single keys are added to it, and the rest is read.
Node parse_hjson(const std::string& text, const std::string& name, ErrorList* errors = nullptr);
// Throws ConfigError, also for a missing file.
Node load_hjson(const std::filesystem::path& path, ErrorList* errors = nullptr);

}  // namespace convoy::config
