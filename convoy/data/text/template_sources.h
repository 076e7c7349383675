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
  // True: the template is a string in a JSON file, so its line numbers are not lines of the file.
  bool in_json = false;
};

// Name of the template for conversations without tools.
inline constexpr const char* kUsualTemplate = "default";

// Templates by name, from chat_template.jinja and additional_chat_templates, from
// tokenizer_config.json (`chat_template` as a string or a list of named templates), or only from
// `override_path`. Throws DataError.
std::map<std::string, TemplateSource> find_template_sources(
    const std::filesystem::path& folder, const std::filesystem::path& override_path,
    const TokenizerSettings& settings);

// The text of the model's default template; empty when it has none. Throws DataError.
std::string usual_template_text(const std::filesystem::path& model_folder);

}  // namespace convoy::text
