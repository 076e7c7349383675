// SPDX-License-Identifier: Apache-2.0
//
// The chat templates of a model folder as texts, before they are compiled.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "convoy/data/text/tokenizer_settings.h"

namespace convoy::text {

struct TemplateSource {
  std::string text;
  std::string file;
  // Inside a JSON file the template's lines are not the file's.
  bool in_json = false;
};

// The template for conversations without tools.
inline constexpr const char* kUsualTemplate = "default";

// By name, from chat_template.jinja and additional_chat_templates, or tokenizer_config.json
// (`chat_template` as a string or a list of named templates), or `override_path` alone. Throws
// DataError.
std::map<std::string, TemplateSource> find_template_sources(
    const std::filesystem::path& folder, const std::filesystem::path& override_path,
    const TokenizerSettings& settings);

// The text of a model's usual template; empty when it has none. Throws DataError.
std::string usual_template_text(const std::filesystem::path& model_folder);

}  // namespace convoy::text
