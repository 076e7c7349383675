// SPDX-License-Identifier: Apache-2.0
//
// How a byte-level tokenizer cuts a text before it merges bytes: llama.cpp's names of it
// (tokenizer.ggml.pre), and the steps of transformers' tokenizer.json that cut alike.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::gguf {

struct PreTokenizer {
  std::vector<std::string_view> names;  // the first is the one that is written
  // Expressions of Oniguruma, one after another: each cuts the pieces of the one before, and keeps
  // what it does not match.
  std::vector<std::string_view> cuts;
  bool ignores_merges = false;  // a piece that is a token is taken whole
  bool adds_bos = false;        // where the file does not say
  bool normalizes = false;      // NFC in tokenizer.json; llama.cpp leaves it out
};

std::span<const PreTokenizer> pre_tokenizers();
const PreTokenizer* find_pre_tokenizer(std::string_view name);  // null: not known

// The `pre_tokenizer` of tokenizer.json.
nlohmann::ordered_json pre_tokenizer_json(const PreTokenizer& pre_tokenizer);

// The one that cuts as `json` does. Null: llama.cpp has none.
const PreTokenizer* matching_pre_tokenizer(const nlohmann::ordered_json& json, bool ignores_merges);

}  // namespace convoy::gguf
