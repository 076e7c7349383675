// SPDX-License-Identifier: Apache-2.0
//
// What this build is: version, git id, presets. build_facts.cpp is written by CMake when it
// configures.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace convoy::apps {

extern const std::string_view kVersion;
extern const std::string_view kGitId;        // "unknown" outside a git checkout
extern const std::string_view kTorchFolder;  // where LibTorch was when this was built

// Name -> YAML text of presets/*.yaml.
std::map<std::string, std::string> preset_texts();

// Name -> text of presets/prompts/*.txt.
std::map<std::string, std::string> prompt_texts();

}  // namespace convoy::apps
