// SPDX-License-Identifier: Apache-2.0
//
// A Hugging Face tokenizer as the metadata of a GGUF file: the reverse of tokenizer_text.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/writer.h"
#include "convoy/core/io/json_text.h"

namespace convoy::gguf {

struct TokenizerFiles {
  io::Json tokenizer = {};         // tokenizer.json
  io::Json tokenizer_config = {};  // an object; empty when there is no such file
  std::string chat_template = {};  // empty: no template
  std::vector<int64_t> ends = {};  // ids that end texts, the usual end id first
  std::string place = {};          // the folder's name, for errors
  // llama.cpp joins this architecture's pieces by a list of merges, not by scores (Gemma 4).
  bool lists_merges = false;
};

// `vocab_size`: number of rows of the embedding; ids without a token get placeholder tokens.
// Returns notices for people, one sentence each. Throws DataError with the reason when llama.cpp
// has no such tokenizer.
std::vector<std::string> add_tokenizer(const TokenizerFiles& files, int64_t vocab_size,
                                       Metadata& metadata);

}  // namespace convoy::gguf
