// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_shape.h"

#include <array>
#include <string_view>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/data/datasets/masks/turn_weights.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Sample::Kind;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSpeakers = {
    {{"user", "human"}, {"assistant", "gpt"}, {"system", "system"}, {"tool", "tool"}}};

[[noreturn]] void fail(const Sample& sample, const std::string& reason, std::string hint = {}) {
  throw DataError(fmt::format("row {}: {}", sample.index + 1, reason),
                  {.file = sample.file, .line = sample.line, .hint = std::move(hint)});
}

// All turns of the sample. `schema`: the name of the target schema, for error messages.
Json conversation(const Sample& sample, std::string_view schema) {
  if (sample.kind == Kind::Text)
    fail(sample, fmt::format("plain text has no turns, which {} needs", schema),
         "write the schema text, or name the schema of the rows with --schema");
  if (sample.kind == Kind::PromptCompletion)
    return Json::array({{{"role", "user"}, {"content", sample.prompt}},
                        {{"role", "assistant"}, {"content", sample.completion}}});
  Json messages = sample.messages;
  for (const Json& message : sample.completion_messages) messages.push_back(message);
  return messages;
}

// The text of a message. Throws DataError when the message has more than a role and a text.
std::string plain_text(const Sample& sample, const Json& message, std::string_view schema) {
  for (const auto& [key, value] : message.items())
    if (key != "role" && key != "content" && !(schema == "sharegpt" && is_turn_weight_key(key)))
      fail(sample, fmt::format("{} has no room for the message's `{}`", schema, key),
           "write messages, which keep it");
  return content_text(message);
}

void require_no_variables(const Sample& sample, std::string_view schema) {
  if (sample.variables.is_null() || sample.variables.empty()) return;
  fail(sample, fmt::format("{} has no room for `{}`", schema, sample.variables.begin().key()),
       "write messages, which keep it");
}

struct Exchange {
  std::string system;
  std::string user;
  std::string assistant;
};

Exchange one_exchange(const Sample& sample, std::string_view schema) {
  const Json messages = conversation(sample, schema);
  require_no_variables(sample, schema);
  const bool has_system = messages[0]["role"] == "system";
  const size_t first = has_system ? 1 : 0;
  if (messages.size() != first + 2 || messages[first]["role"] != "user" ||
      messages[first + 1]["role"] != "assistant")
    fail(sample,
         fmt::format("{} holds one turn of the user and one of the assistant, found {}", schema,
                     counted(std::ssize(messages), "turn")),
         "convert to messages or sharegpt");
  return {has_system ? plain_text(sample, messages[0], schema) : "",
          plain_text(sample, messages[first], schema),
          plain_text(sample, messages[first + 1], schema)};
}

void add_variables(const Sample& sample, Json& row) {
  Json others = Json::object();
  for (const auto& [key, value] : sample.variables.items())
    (key == "tools" || key == "documents" ? row : others)[key] = value;
  if (!others.empty()) row["chat_template_kwargs"] = std::move(others);
}

Json messages_row(const Sample& sample) {
  Json row = {{"messages", conversation(sample, "messages")}};
  add_variables(sample, row);
  return row;
}

Json sharegpt_row(const Sample& sample) {
  Json turns = Json::array();
  for (const Json& message : conversation(sample, "sharegpt")) {
    const auto role = message["role"].get<std::string>();
    std::string_view speaker;
    for (const auto& [ours, theirs] : kSpeakers)
      if (ours == role) speaker = theirs;
    if (speaker.empty())
      fail(sample, fmt::format("sharegpt has no speaker for the role `{}`", role),
           "write messages, which have any role");
    Json turn = {{"from", speaker}, {"value", plain_text(sample, message, "sharegpt")}};
    for (const auto& [key, value] : message.items())
      if (is_turn_weight_key(key)) turn[key] = value;
    turns.push_back(std::move(turn));
  }
  Json row = {{"conversations", std::move(turns)}};
  add_variables(sample, row);
  return row;
}

Json alpaca_row(const Sample& sample) {
  Exchange exchange = one_exchange(sample, "alpaca");
  Json row = {{"instruction", std::move(exchange.user)},
              {"input", ""},
              {"output", std::move(exchange.assistant)}};
  if (!exchange.system.empty()) row["system"] = std::move(exchange.system);
  return row;
}

Json triple_row(const Sample& sample) {
  Exchange exchange = one_exchange(sample, "triple");
  return {{"system", std::move(exchange.system)},
          {"user", std::move(exchange.user)},
          {"assistant", std::move(exchange.assistant)}};
}

Json prompt_completion_row(const Sample& sample) {
  if (sample.kind == Kind::PromptCompletion)
    return {{"prompt", sample.prompt}, {"completion", sample.completion}};
  Json prompt = sample.messages;
  Json completion = sample.completion_messages;
  if (sample.kind != Kind::ChatPromptCompletion) {
    prompt = conversation(sample, "prompt_completion");
    const bool ends_with_answer = prompt.size() > 1 && prompt.back()["role"] == "assistant";
    if (!ends_with_answer)
      fail(sample, "prompt_completion needs a conversation that ends with an assistant's turn",
           "write messages, or add the answer to the row");
    completion = Json::array({prompt.back()});
    prompt.erase(prompt.size() - 1);
  }
  Json row = {{"prompt", std::move(prompt)}, {"completion", std::move(completion)}};
  add_variables(sample, row);
  return row;
}

void require_texts(const Sample& sample, std::string_view schema) {
  if (sample.kind == Kind::Chat || sample.kind == Kind::ChatPromptCompletion)
    fail(sample, fmt::format("a conversation becomes {} through a chat template", schema),
         "use `convoy data render`");
}

Json rendered_row(const Sample& sample) {
  require_texts(sample, "rendered");
  if (sample.kind == Kind::Text)
    fail(sample, "plain text has no target, which rendered needs", "write the schema text");
  return {{"input", sample.prompt}, {"target", sample.completion}};
}

Json text_row(const Sample& sample) {
  require_texts(sample, "text");
  return {{"text", sample.kind == Kind::Text ? sample.text : sample.prompt + sample.completion}};
}

}  // namespace

std::string content_text(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (const Json& part : *content) text += part.value("text", "");
  return text;
}

Json row_of(const Sample& sample, Schema schema) {
  if (sample.is_pair)
    fail(sample,
         fmt::format("a preference has two completions, and {} has room for one",
                     schema_name(schema)),
         "keep the row as it is (--to same), or leave `rejected` out and rename `chosen`");
  if (sample.is_judged)
    fail(sample,
         fmt::format("{} has no room for what the row's label says of the answer",
                     schema_name(schema)),
         "keep the row as it is (--to same)");
  switch (schema) {
    case Schema::Messages:
      return messages_row(sample);
    case Schema::ShareGpt:
      return sharegpt_row(sample);
    case Schema::Alpaca:
      return alpaca_row(sample);
    case Schema::PromptCompletion:
      return prompt_completion_row(sample);
    case Schema::Triple:
      return triple_row(sample);
    case Schema::Rendered:
      return rendered_row(sample);
    case Schema::Text:
      return text_row(sample);
    case Schema::Preference:
    case Schema::Ranked:
    case Schema::UnpairedPreference:
    case Schema::Loose:
      break;
  }
  throw ConfigError(
      "rows cannot be written as `loose`, which describes rows that match no other schema",
      {.key = "--to", .hint = "messages, alpaca, triple, ..."});
}

}  // namespace convoy::data
