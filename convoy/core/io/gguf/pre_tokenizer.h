// SPDX-License-Identifier: Apache-2.0
//
// How a byte-level tokenizer cuts a text before it merges bytes: llama.cpp's names for the ways of
// cutting (tokenizer.ggml.pre), and the steps of transformers' tokenizer.json that cut in the same
// way.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::gguf {

struct PreTokenizer {
  std::vector<std::string_view> names;  // the first name is written to files
  // Oniguruma expressions, applied one after another. Each cuts the pieces of the expression before
  // it, and keeps the parts that it does not match.
  std::vector<std::string_view> cuts;
  bool ignores_merges = false;  // a piece that is a token is taken whole
  bool adds_bos = false;        // default when the file does not tell
  bool normalizes = false;      // NFC in tokenizer.json; llama.cpp leaves it out
};

std::span<const PreTokenizer> pre_tokenizers();
const PreTokenizer* find_pre_tokenizer(std::string_view name);  // null: not known

// The member `pre_tokenizer` of tokenizer.json.
nlohmann::ordered_json pre_tokenizer_json(const PreTokenizer& pre_tokenizer);

// The pre-tokenizer that cuts as `json` does. Null: llama.cpp has none.
const PreTokenizer* matching_pre_tokenizer(const nlohmann::ordered_json& json, bool ignores_merges);

}  // namespace convoy::gguf
