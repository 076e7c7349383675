// SPDX-License-Identifier: Apache-2.0
//
// Chooses the files of a repository to fetch.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::hub {

struct FileChoice {
  std::vector<std::string> include = {};  // patterns; empty: `is_read` decides
  std::vector<std::string> exclude = {};
};

// The chosen files, in the given order. Patterns follow the shell (`*` also matches slashes, as in
// huggingface_hub): "*.json", "onnx/*", "data/" for a whole folder.
std::vector<std::string> chosen_files(const std::vector<std::string>& files,
                                      const FileChoice& choice,
                                      const std::function<bool(const std::string&)>& is_read);

// True for the files of a model that Convoy reads, at the top of the repository: configuration,
// tokenizer, templates, safetensors, model card and licence. False for pickle files, and for a
// second copy of the weights in another layout (consolidated.safetensors).
bool is_model_file(const std::string& path);

bool matches_pattern(std::string_view pattern, std::string_view path);

}  // namespace convoy::hub
