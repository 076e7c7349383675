// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/question.h"

#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail_question(const Sample& sample, const std::string& reason,
                                std::string hint = {}) {
  throw DataError(fmt::format("row {}: {}", sample.index + 1, reason),
                  {.file = sample.file, .line = sample.line, .hint = std::move(hint)});
}

// The text parts of a content, joined without a separator.
std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const Json& part : content) text += part.at("text").get<std::string>();
  return text;
}

std::string answer_of(const Sample& sample, const Json& turn) {
  if (turn.at("role") != "assistant")
    fail_question(sample, "wanted a last turn of the assistant to compare with",
                  "add the answer to the row");
  const auto content = turn.find("content");
  std::string text = content == turn.end() ? "" : text_of(*content);
  if (text.empty() && turn.contains("tool_calls"))
    fail_question(sample,
                  "the last turn of the assistant only calls tools: no text to compare with",
                  "end the row with an answer, or leave it out");
  return text;
}

}  // namespace

Question split_answer(const Sample& sample) {
  Question question{.prompt = sample, .reference = {}};
  Sample& prompt = question.prompt;
  switch (sample.kind) {
    case Sample::Kind::Chat:
      question.reference = answer_of(sample, sample.messages.back());
      if (sample.messages.size() == 1)
        fail_question(sample, "the assistant's turn answers no question",
                      "put a turn of the user before it");
      prompt.messages.erase(prompt.messages.size() - 1);
      // In a row with prompt and completion every message of the prompt belongs to the question,
      // even if the last one is the assistant's.
      prompt.kind = Sample::Kind::ChatPromptCompletion;
      prompt.completion_messages = Json::array();
      return question;
    case Sample::Kind::ChatPromptCompletion:
      question.reference = answer_of(sample, sample.completion_messages.back());
      prompt.completion_messages = Json::array();
      return question;
    case Sample::Kind::PromptCompletion:
      question.reference = std::exchange(prompt.completion, {});
      return question;
    case Sample::Kind::Text:
      break;
  }
  fail_question(sample, "a plain text has no answer to compare with",
                "measure the loss alone: leave out --generate");
}

}  // namespace convoy::data
