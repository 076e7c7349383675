// SPDX-License-Identifier: Apache-2.0
//
// Which files of a repository are fetched.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::hub {

struct FileChoice {
  std::vector<std::string> include = {};  // patterns; empty: what `is_read` says
  std::vector<std::string> exclude = {};
};

// In the order given. Patterns are the shell's (`*` crosses slashes, as in huggingface_hub):
// "*.json", "onnx/*", "data/" for all of a folder.
std::vector<std::string> chosen_files(const std::vector<std::string>& files,
                                      const FileChoice& choice,
                                      const std::function<bool(const std::string&)>& is_read);

// What Convoy reads of a model: its configuration, tokenizer, templates, safetensors, model card
// and licence, at the top of the repository. Not pickles, nor weights in other layouts beside these
// (consolidated.safetensors).
bool is_model_file(const std::string& path);

bool matches_pattern(std::string_view pattern, std::string_view path);

}  // namespace convoy::hub
