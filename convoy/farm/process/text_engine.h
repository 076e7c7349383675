// SPDX-License-Identifier: Apache-2.0
//
// The interface between the processing of a data set and a language model: texts for prompts, many
// at a time, each returned as soon as it is ready. Without LibTorch: a model implements it, or a
// substitute (tests, benchmarks). One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/generate/scheduler/engine_figures.h"

namespace convoy::process {

struct Prompt {
  // For a chat model: [{role, content}, ...], rendered by the model's own template. Null: `text` is
  // the prompt.
  nlohmann::ordered_json messages = nullptr;
  std::string text = {};
  // Variables for the template, in the form of text::ChatTemplate::render. Null: the engine's.
  nlohmann::ordered_json variables = nullptr;
};

struct TextSampling {
  double temperature = 0.6;  // 0: the most likely token
  int64_t top_k = 0;         // 0 = all
  double top_p = 0.95;
  double min_p = 0;               // ids below this share of the likeliest one's are left out
  double repetition_penalty = 1;  // transformers' rule, over prompt and answer
  int64_t max_new_tokens = 4096;
  std::vector<std::string> stop = {};  // strings that end a text and are not part of it
};

// The random numbers that a text is drawn from, together with the position of each token: nothing
// else decides them.
struct DrawSource {
  uint64_t seed = 0;
  int64_t row = 0;
  uint64_t sample = 0;
};

struct TextRequest {
  int64_t number = 0;  // the caller's, given back with the text; unique among the unfinished ones
  Prompt prompt = {};
  TextSampling sampling = {};
  DrawSource draw = {};
  int64_t priority = 0;  // higher goes first
};

// Stop: an end token or a stop string. Length: a limit cut the text. Error: the engine has no text
// for this prompt.
enum class TextFinish { Stop, Length, Error };
std::string_view text_finish_name(TextFinish finish);  // "stop", "length", "error"
TextFinish text_finish_named(std::string_view name);   // Throws DataError

struct TextResult {
  int64_t number = 0;
  TextFinish finish = TextFinish::Stop;
  // A server's own word for an end that is neither: "content_filter". Else empty.
  std::string other_finish = {};
  std::string text = {};   // without end token, stop string and special tokens; UTF-8
  std::string error = {};  // for TextFinish::Error; never part of `text`
  // True when the same request may succeed later: after a full device, for example, but not for a
  // prompt that is too long.
  bool error_may_pass = false;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
};

using EngineFigures = scheduler::EngineFigures;

// "content_filter", where a server has a word of its own; else text_finish_name().
std::string_view finish_word(TextFinish finish, const std::string& other_finish);

class TextEngine {
 public:
  virtual ~TextEngine() = default;
  // Never blocks. A prompt that cannot be answered ends as an Error of a later step().
  virtual void submit(TextRequest request) = 0;
  // The request ends without a text. Nothing happens for a number that is not unfinished.
  virtual void cancel(int64_t number) = 0;
  // Unfinished requests.
  virtual int64_t unfinished() const = 0;
  // One step of all that run. Returns what ended, which may be nothing. Throws convoy::Error when
  // the engine as a whole cannot go on.
  virtual std::vector<TextResult> step() = 0;
  virtual EngineFigures figures() const = 0;
};

}  // namespace convoy::process
