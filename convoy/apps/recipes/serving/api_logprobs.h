// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities of an answer's tokens in the form of OpenAI's API, whole or part by part.
#pragma once

#include <cstdint>

#include "convoy/apps/recipes/serving/api_request.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/request.h"

namespace convoy::recipes {

// The bytes that the token adds to a text, even when they are only a part of a character.
std::string token_bytes(const text::Tokenizer& tokenizer, int32_t id);

class LogprobWriter {
 public:
  // The tokenizer must outlive it.
  LogprobWriter(ApiKind kind, const text::Tokenizer& tokenizer)
      : kind_(kind), tokenizer_(tokenizer) {}

  // Writes the tokens that earlier calls have not written; null if there are none, or none with a
  // log-probability. `all`: the tokens of the answer so far. Tokens whose text may still become a
  // stop string (its last `unsure_bytes`) are held back.
  Json next(const generate::AnswerTokens& all, size_t unsure_bytes = 0);

 private:
  size_t end_of_certain(const generate::AnswerTokens& all, size_t unsure_bytes) const;
  Json chat_part(const generate::AnswerTokens& all, size_t end);
  Json completion_part(const generate::AnswerTokens& all, size_t end);
  int64_t offset_of_next(int32_t id);

  ApiKind kind_;
  const text::Tokenizer& tokenizer_;
  size_t given_ = 0;     // tokens that were written
  int64_t letters_ = 0;  // characters that begin in these tokens
};

}  // namespace convoy::recipes
