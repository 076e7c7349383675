// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities of an answer's tokens in the form of OpenAI's API, whole or part by part.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "convoy/apps/recipes/serving/api_request.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/request.h"

namespace convoy::recipes {

// The offsets of tokens in a text, in characters, as clients count them.
class TextOffsets {
 public:
  // `bytes`: what the token adds to the text. A token that begins inside a character has the offset
  // of that character.
  int64_t next(std::string_view bytes);

 private:
  int64_t letters_ = 0;  // characters that begin in the tokens so far
};

// The bytes that the token adds to a text, even when they are only a part of a character.
std::string token_bytes(const text::Tokenizer& tokenizer, int32_t id);

// A prompt whose log-probabilities are written.
struct ScoredPrompt {
  std::string_view text;  // as the client gave it, or the text of its ids
  std::span<const int32_t> ids;
  const generate::PromptLogprobs& logprobs;
};

// In vLLM's form: for each token null or {"ID": {"logprob", "rank", "decoded_token"}, ...} with the
// token itself and the `most_likeliest` likeliest ones. The rank is null for a token that is not
// among these.
Json prompt_logprobs(const text::Tokenizer& tokenizer, const ScoredPrompt& prompt,
                     int64_t most_likeliest);
// Returns the log-probabilities of a completion that begins with its prompt: of all its tokens,
// even the end token, because clients tell prompt and answer apart by their numbers of tokens.
Json echoed_logprobs(const text::Tokenizer& tokenizer, const ScoredPrompt& prompt,
                     int64_t most_likeliest, const generate::AnswerTokens& answer);

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

  ApiKind kind_;
  const text::Tokenizer& tokenizer_;
  size_t given_ = 0;     // tokens that were written
  TextOffsets offsets_;  // offsets of these tokens
};

}  // namespace convoy::recipes
