// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_answer.h"

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
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

std::string part_of_choice(const AnswerHead& head, int64_t choice, const Json& content,
                           const Json& finish_reason) {
  Json part = head_of(head, true);
  Json one = {{"index", choice}};
  one[head.kind == ApiKind::Chat ? "delta" : "text"] = content;
  one["logprobs"] = nullptr;
  one["finish_reason"] = finish_reason;
  part["choices"] = Json::array({one});
  return event(part);
}

Json content_of(const AnswerHead& head, std::string_view text) {
  if (head.kind == ApiKind::Completion) return text;
  return {{"content", text}};
}

// The end token is no part of the text.
Json log_probabilities(ApiKind kind, const generate::Completion& completion,
                       const text::Tokenizer& tokenizer) {
  Json content = Json::array();
  Json tokens = Json::array();
  Json values = Json::array();
  Json offsets = Json::array();
  int64_t offset = 0;
  for (size_t at = 0; at < completion.logprobs.size(); ++at) {
    const int32_t id = completion.token_ids[at];
    if (at + 1 == completion.token_ids.size() && tokenizer.is_special(id)) break;
    const std::string token = tokenizer.decode({id}, false);
    content.push_back({{"token", token},
                       {"logprob", completion.logprobs[at]},
                       {"bytes", std::vector<uint8_t>(token.begin(), token.end())},
                       {"top_logprobs", Json::array()}});
    tokens.push_back(token);
    values.push_back(completion.logprobs[at]);
    offsets.push_back(offset);
    offset += std::ssize(token);
  }
  if (kind == ApiKind::Chat) return {{"content", content}};
  return {{"tokens", tokens},
          {"token_logprobs", values},
          {"top_logprobs", nullptr},
          {"text_offset", offsets}};
}

}  // namespace

Json whole_answer(const AnswerHead& head, const std::vector<generate::Completion>& completions,
                  const Usage& usage, const text::Tokenizer& tokenizer) {
  Json answer = head_of(head, false);
  answer["choices"] = Json::array();
  for (size_t choice = 0; choice < completions.size(); ++choice) {
    const generate::Completion& completion = completions[choice];
    Json one = {{"index", choice}};
    if (head.kind == ApiKind::Chat)
      one["message"] = {{"role", "assistant"}, {"content", completion.text}};
    else
      one["text"] = completion.text;
    one["logprobs"] =
        completion.logprobs.empty() ? Json() : log_probabilities(head.kind, completion, tokenizer);
    one["finish_reason"] = generate::finish_reason_name(completion.finish_reason);
    answer["choices"].push_back(one);
  }
  answer["usage"] = usage_of(usage);
  return answer;
}

std::string first_part(const AnswerHead& head, int64_t choice) {
  if (head.kind == ApiKind::Completion) return {};
  return part_of_choice(head, choice, {{"role", "assistant"}, {"content", ""}}, nullptr);
}

std::string text_part(const AnswerHead& head, int64_t choice, std::string_view text) {
  return part_of_choice(head, choice, content_of(head, text), nullptr);
}

std::string end_part(const AnswerHead& head, int64_t choice, generate::FinishReason reason) {
  const Json nothing = head.kind == ApiKind::Chat ? Json::object() : Json("");
  return part_of_choice(head, choice, nothing, generate::finish_reason_name(reason));
}

std::string usage_part(const AnswerHead& head, const Usage& usage) {
  Json part = head_of(head, true);
  part["choices"] = Json::array();
  part["usage"] = usage_of(usage);
  return event(part);
}

}  // namespace convoy::recipes
