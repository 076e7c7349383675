// SPDX-License-Identifier: Apache-2.0
//
// Answers in the form of OpenAI's API: whole ones, and the parts of streams (server-sent events).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/apps/recipes/serving/api_request.h"
#include "convoy/apps/recipes/serving/thought_reader.h"
#include "convoy/apps/recipes/serving/tool_calls.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/request.h"

namespace convoy::recipes {

// The fields that all parts of an answer have.
struct AnswerHead {
  ApiKind kind = ApiKind::Chat;
  std::string id;
  std::string model;
  int64_t created = 0;                        // seconds since 1970
  ToolFormat tool_format = ToolFormat::None;  // how calls are read from the texts
  bool begins_in_thoughts = false;            // the prompt has opened the thoughts
  Thoughts thoughts = Thoughts::None;         // before answers of a given form
  bool reports_usage = false;                 // usage in a last part; null in the other parts
};

// The prompts of a whole answer, and what it shows of them.
struct AskedPrompts {
  std::vector<std::vector<int32_t>> ids = {};
  int64_t choices_per_prompt = 1;
  bool echoes = false;                          // texts begin with their prompts
  std::vector<std::string> texts = {};          // by prompt, for an echo
  std::optional<int64_t> echoed_logprobs = {};  // likeliest tokens of an echo's log-probabilities
  std::optional<int64_t> prompt_logprobs = {};  // as in ApiRequest
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens that were not computed again
};

// `completions`: by choice. `tokenizer` writes the tokens of log-probabilities.
Json whole_answer(const AnswerHead& head, const AskedPrompts& prompts,
                  const std::vector<generate::Completion>& completions, const Usage& usage,
                  const text::Tokenizer& tokenizer);

// "data: {...}\n\n" with the next text of a choice; the first part of a chat's choice names the
// role.
std::string first_part(const AnswerHead& head, int64_t choice);  // empty for completions
std::string text_part(const AnswerHead& head, int64_t choice, std::string_view text,
                      const Json& logprobs);  // null: none
std::string thoughts_part(const AnswerHead& head, int64_t choice, std::string_view thoughts);
// A part with whole calls. `first`: the number of the first one within the choice.
std::string calls_part(const AnswerHead& head, int64_t choice, const std::vector<ToolCall>& calls,
                       int64_t first);
std::string end_part(const AnswerHead& head, int64_t choice, const generate::Completion& completion,
                     bool calls_tools);
std::string usage_part(const AnswerHead& head, const Usage& usage);
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";

}  // namespace convoy::recipes
