// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a GGUF file as the files of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/file.h"

namespace convoy::gguf {

// The types of tokens, by the format's numbers.
inline constexpr int64_t kNormalToken = 1;
inline constexpr int64_t kUnknownToken = 2;
inline constexpr int64_t kControlToken = 3;
inline constexpr int64_t kUserToken = 4;
inline constexpr int64_t kUnusedToken = 5;
inline constexpr int64_t kByteToken = 6;

// Throws DataError naming the key.
std::string tokenizer_json_text(const File& file);
std::string tokenizer_config_text(const File& file);

// The token of `key` ("tokenizer.ggml.eos_token_id"); nullopt when the file names no token.
std::optional<int64_t> token_id(const File& file, const std::string& key);

// Ids of the tokens that end a text in llama.cpp: first the named ids, then the ids that llama.cpp
// recognises by their text.
std::vector<int64_t> end_ids(const File& file);

// Notices for people about the tokenizer, one sentence each.
std::vector<std::string> tokenizer_notices(const File& file);

// True for the tokens that always end an answer in llama.cpp, whatever a file says.
bool ends_by_its_text(const std::string& token);

}  // namespace convoy::gguf
