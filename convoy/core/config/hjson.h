// SPDX-License-Identifier: Apache-2.0
//
// JSON as people write it for DeepSpeed, whose reader is Hjson: comments (//, /* */, #), commas
// that may be left out or stand too much at the end, words without quotes. A key given twice is an
// error.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/config/document.h"

namespace convoy::config {

// `name` stands for the text in messages. Throws ConfigError with file and line. With `errors`,
// what is wrong with one key alone is added there, and the rest is read.
Node parse_hjson(const std::string& text, const std::string& name, ErrorList* errors = nullptr);
// Throws ConfigError; a missing file as well.
Node load_hjson(const std::filesystem::path& path, ErrorList* errors = nullptr);

}  // namespace convoy::config
