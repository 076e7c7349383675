// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/file_choice.h"

#include <fnmatch.h>

#include <algorithm>

namespace convoy::hub {
namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, path); });
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view path) {
  std::string whole(pattern);
  if (whole.ends_with('/')) whole += '*';
  return ::fnmatch(whole.c_str(), std::string(path).c_str(), FNM_NOESCAPE) == 0;
}

bool is_model_file(const std::string& path) {
  if (path.starts_with("additional_chat_templates/")) return path.ends_with(".jinja");
  if (path.find('/') != path.npos || path.starts_with("consolidated")) return false;
  for (const char* ending : {".safetensors", ".json", ".jinja"})
    if (path.ends_with(ending)) return true;
  return path == "tokenizer.model" || path == "README.md" || path.starts_with("LICENSE");
}

std::vector<std::string> chosen_files(const std::vector<std::string>& files,
                                      const FileChoice& choice,
                                      const std::function<bool(const std::string&)>& is_read) {
  std::vector<std::string> chosen;
  for (const std::string& path : files) {
    const bool wanted = choice.include.empty() ? is_read(path) : matches_any(choice.include, path);
    if (wanted && !matches_any(choice.exclude, path)) chosen.push_back(path);
  }
  return chosen;
}

}  // namespace convoy::hub
