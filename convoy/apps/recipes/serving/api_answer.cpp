// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_answer.h"

#include <fmt/format.h>

#include "convoy/apps/recipes/serving/api_logprobs.h"

namespace convoy::recipes {
namespace {

Json head_of(const AnswerHead& head, bool part) {
  const char* object = head.kind == ApiKind::Completion ? "text_completion"
                       : part                           ? "chat.completion.chunk"
                                                        : "chat.completion";
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

Json usage_of(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::string part_of_choice(const AnswerHead& head, int64_t choice, const Json& content,
                           const Json& logprobs, const Json& end = {{"finish_reason", nullptr}}) {
  Json part = head_of(head, true);
  Json one = {{"index", choice}};
  one[head.kind == ApiKind::Chat ? "delta" : "text"] = content;
  one["logprobs"] = logprobs;
  one.update(end);
  part["choices"] = Json::array({one});
  if (head.reports_usage) part["usage"] = nullptr;
  return event(part);
}

Json content_of(const AnswerHead& head, std::string_view text) {
  if (head.kind == ApiKind::Completion) return text;
  return {{"content", text}};
}

// `first`: the number of the first call within the choice.
Json calls_of(const AnswerHead& head, int64_t choice, const std::vector<ToolCall>& calls,
              int64_t first, bool numbered) {
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    const int64_t number = first + std::ssize(list);
    const std::string answer = head.id.substr(head.id.find('-') + 1);
    Json one = Json::object();
    if (numbered) one["index"] = number;
    one["id"] = fmt::format("call_{}_{}_{}", answer, choice, number);
    one["type"] = "function";
    one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    list.push_back(std::move(one));
  }
  return list;
}

std::string_view finish_reason(generate::FinishReason reason, bool calls_tools) {
  if (calls_tools && reason == generate::FinishReason::Stop) return "tool_calls";
  return generate::finish_reason_name(reason);
}

// vLLM's field, which OpenAI's API does not have: the stop string that ended the text.
void add_stop_string(const generate::Completion& completion, Json& choice) {
  if (!completion.stop_string.empty()) choice["stop_reason"] = completion.stop_string;
}

// Returns the message of `text`, whose calls it puts into `calls`.
Json message_of(const AnswerHead& head, int64_t choice, const std::string& text,
                std::vector<ToolCall>& calls) {
  ThoughtReader thoughts(head.thoughts);
  ThoughtReader::Found parts = thoughts.take(text);
  const ThoughtReader::Found last = thoughts.end();
  parts.thoughts += last.thoughts;
  ToolCallReader reader(head.tool_format, head.begins_in_thoughts);
  ToolCallReader::Found found = reader.take(parts.text + last.text);
  calls = std::move(found.calls);
  ToolCallReader::Found rest = reader.end();
  calls.insert(calls.end(), rest.calls.begin(), rest.calls.end());
  found.text += rest.text;
  Json message = {{"role", "assistant"}, {"content", found.text}};
  if (!parts.thoughts.empty()) message["reasoning_content"] = parts.thoughts;
  if (calls.empty()) return message;
  if (found.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = calls_of(head, choice, calls, 0, false);
  return message;
}

Json chat_choice(const AnswerHead& head, int64_t choice, const generate::Completion& completion,
                 const text::Tokenizer& tokenizer) {
  std::vector<ToolCall> calls;
  Json one = {{"index", choice}, {"message", message_of(head, choice, completion.text, calls)}};
  one["logprobs"] = LogprobWriter(head.kind, tokenizer).next(completion.tokens_of_text());
  one["finish_reason"] = finish_reason(completion.finish_reason, !calls.empty());
  add_stop_string(completion, one);
  return one;
}

Json completion_choice(const AskedPrompts& prompts, size_t choice,
                       const generate::Completion& completion, const text::Tokenizer& tokenizer) {
  const size_t prompt = choice / static_cast<size_t>(prompts.choices_per_prompt);
  const ScoredPrompt scored{prompts.echoes ? std::string_view(prompts.texts[prompt]) : "",
                            prompts.ids[prompt], completion.prompt_logprobs};
  Json one = {{"index", choice}, {"text", std::string(scored.text) + completion.text}};
  one["logprobs"] =
      prompts.echoes && prompts.echoed_logprobs
          ? echoed_logprobs(tokenizer, scored, *prompts.echoed_logprobs, completion.tokens())
          : LogprobWriter(ApiKind::Completion, tokenizer).next(completion.tokens_of_text());
  if (prompts.prompt_logprobs)
    one["prompt_logprobs"] = prompt_logprobs(tokenizer, scored, *prompts.prompt_logprobs);
  one["finish_reason"] = finish_reason(completion.finish_reason, false);
  add_stop_string(completion, one);
  return one;
}

}  // namespace

Json whole_answer(const AnswerHead& head, const AskedPrompts& prompts,
                  const std::vector<generate::Completion>& completions, const Usage& usage,
                  const text::Tokenizer& tokenizer) {
  Json answer = head_of(head, false);
  answer["choices"] = Json::array();
  for (size_t choice = 0; choice < completions.size(); ++choice)
    answer["choices"].push_back(
        head.kind == ApiKind::Chat
            ? chat_choice(head, static_cast<int64_t>(choice), completions[choice], tokenizer)
            : completion_choice(prompts, choice, completions[choice], tokenizer));
  // A chat has one prompt, so vLLM puts its log-probabilities beside the choices.
  if (head.kind == ApiKind::Chat && prompts.prompt_logprobs)
    answer["prompt_logprobs"] =
        prompt_logprobs(tokenizer, {"", prompts.ids.front(), completions.front().prompt_logprobs},
                        *prompts.prompt_logprobs);
  answer["usage"] = usage_of(usage);
  return answer;
}

std::string first_part(const AnswerHead& head, int64_t choice) {
  if (head.kind == ApiKind::Completion) return {};
  return part_of_choice(head, choice, {{"role", "assistant"}, {"content", ""}}, nullptr);
}

std::string text_part(const AnswerHead& head, int64_t choice, std::string_view text,
                      const Json& logprobs) {
  return part_of_choice(head, choice, content_of(head, text), logprobs);
}

std::string thoughts_part(const AnswerHead& head, int64_t choice, std::string_view thoughts) {
  return part_of_choice(head, choice, {{"reasoning_content", thoughts}}, nullptr);
}

std::string calls_part(const AnswerHead& head, int64_t choice, const std::vector<ToolCall>& calls,
                       int64_t first) {
  return part_of_choice(head, choice, {{"tool_calls", calls_of(head, choice, calls, first, true)}},
                        nullptr);
}

std::string end_part(const AnswerHead& head, int64_t choice, const generate::Completion& completion,
                     bool calls_tools) {
  Json end = {{"finish_reason", finish_reason(completion.finish_reason, calls_tools)}};
  add_stop_string(completion, end);
  const Json nothing = head.kind == ApiKind::Chat ? Json::object() : Json("");
  return part_of_choice(head, choice, nothing, nullptr, end);
}

std::string usage_part(const AnswerHead& head, const Usage& usage) {
  Json part = head_of(head, true);
  part["choices"] = Json::array();
  part["usage"] = usage_of(usage);
  return event(part);
}

}  // namespace convoy::recipes
