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

// The token of `key` ("tokenizer.ggml.eos_token_id"); none where the file names none.
std::optional<int64_t> token_id(const File& file, const std::string& key);

// Ids at which llama.cpp ends a text: the named ones, then the ids that it recognises by their
// text.
std::vector<int64_t> end_ids(const File& file);

// Says what people have to know of it, one sentence each.
std::vector<std::string> tokenizer_notices(const File& file);

// Texts that end an answer whatever a file says, as llama.cpp has them.
bool ends_by_its_text(const std::string& token);

}  // namespace convoy::gguf
