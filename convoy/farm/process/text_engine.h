// SPDX-License-Identifier: Apache-2.0
//
// The interface between the processing of a data set and a language model: texts for prompts, many
// at a time, each returned as soon as it is ready. It needs no LibTorch. A model implements it, or
// a substitute for tests and benchmarks. One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/generate/scheduler/engine_figures.h"

namespace convoy::process {

struct Prompt {
  // For a chat model: [{role, content}, ...], rendered by the model's own chat template. Null:
  // `text` is the prompt.
  nlohmann::ordered_json messages = nullptr;
  std::string text = {};
  // The prompt's tokens, in place of `text`; empty: there are none.
  std::vector<int32_t> ids = {};
  // Variables for the template, in the form of text::ChatTemplate::render. Null: the variables of
  // the engine.
  nlohmann::ordered_json variables = nullptr;
};

struct TextSampling {
  double temperature = 0.6;  // 0: always the most likely token
  int64_t top_k = 0;         // 0 = no limit
  double top_p = 0.95;
  double min_p = 0;  // excludes tokens less likely than this share of the likeliest token
  double repetition_penalty = 1;  // the rule of transformers, over prompt and answer
  int64_t max_new_tokens = 4096;
  std::vector<std::string> stop = {};  // strings that end a text and are not part of it
};

// The random numbers of a text are drawn from these fields and the position of each token: nothing
// else decides them.
struct DrawSource {
  uint64_t seed = 0;
  int64_t row = 0;
  uint64_t sample = 0;
};

struct TextRequest {
  // Set by the caller and returned with the text; unique among unfinished requests.
  int64_t number = 0;
  Prompt prompt = {};
  TextSampling sampling = {};
  DrawSource draw = {};
  int64_t priority = 0;     // a higher priority is served first
  std::string schema = {};  // a JSON Schema that the text must match, as JSON; empty: any text
  // The number of likeliest tokens that are wanted in the place of each token of the prompt. Only
  // servers give them: a model that is loaded here refuses such a request.
  int64_t prompt_likeliest = 0;
};

// A token that a model may say in one place, with the logarithm of its probability there.
struct LikelyToken {
  int32_t id = 0;
  float logprob = 0;
  std::string text = {};  // as the server spells it; empty: it does not
};

// Stop: an end token or a stop string. Length: a limit cut the text. Error: the engine has no text
// for this prompt.
enum class TextFinish { Stop, Length, Error };
std::string_view text_finish_name(TextFinish finish);  // returns "stop", "length" or "error"
TextFinish text_finish_named(std::string_view name);   // throws DataError

struct TextResult {
  int64_t number = 0;
  TextFinish finish = TextFinish::Stop;
  // The server's own word for another reason, such as "content_filter"; else empty.
  std::string other_finish = {};
  std::string text = {};   // without end token, stop string and special tokens; in UTF-8
  std::string error = {};  // message for TextFinish::Error; never part of `text`
  // True when the same request may succeed later: after a full device, for example, but not for a
  // prompt that is too long.
  bool error_may_pass = false;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  // As TextRequest::prompt_likeliest asked: for each token of the prompt the likeliest tokens of
  // its place and the token itself, in any order; none for the first token.
  std::vector<std::vector<LikelyToken>> prompt_likeliest = {};
};

using EngineFigures = scheduler::EngineFigures;

// The server's own word, such as "content_filter", if there is one; else text_finish_name().
std::string_view finish_word(TextFinish finish, const std::string& other_finish);

class TextEngine {
 public:
  virtual ~TextEngine() = default;
  // Never blocks. A prompt that cannot be answered ends as an Error in a later step().
  virtual void submit(TextRequest request) = 0;
  // Ends the request without a text. Does nothing if no unfinished request has this number.
  virtual void cancel(int64_t number) = 0;
  // Number of unfinished requests.
  virtual int64_t unfinished() const = 0;
  // Does one step for all running requests. Returns the texts that ended, which may be none. Throws
  // convoy::Error if the engine as a whole cannot continue.
  virtual std::vector<TextResult> step() = 0;
  virtual EngineFigures figures() const = 0;
};

}  // namespace convoy::process
