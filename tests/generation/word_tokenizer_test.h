// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer for models whose ids have no meaning.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/text/tokenizer.h"
#include "files/temporary_folder.h"

namespace convoy::testing {

// A tokenizer with one word for each id, and without an end token.
inline text::Tokenizer word_tokenizer(int64_t vocab_size) {
  TemporaryFolder folder;
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int64_t id = 0; id < vocab_size; ++id) vocabulary["w" + std::to_string(id)] = id;
  std::ofstream(folder / "tokenizer.json") << nlohmann::json{
      {"version", "1.0"},
      {"added_tokens", nlohmann::json::array()},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "w0"}}}};
  std::ofstream(folder / "tokenizer_config.json") << "{}";
  return text::Tokenizer::load(folder.path());
}

}  // namespace convoy::testing
