// SPDX-License-Identifier: Apache-2.0
//
// Facts about this build: version, git id, presets. CMake generates build_facts.cpp when it
// configures.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace convoy::apps {

extern const std::string_view kVersion;
extern const std::string_view kGitId;        // "unknown" outside a git checkout
extern const std::string_view kTorchFolder;  // LibTorch's folder at build time

// Name -> YAML text of presets/*.yaml.
std::map<std::string, std::string> preset_texts();

// Name -> text of presets/prompts/*.txt.
std::map<std::string, std::string> prompt_texts();

}  // namespace convoy::apps
