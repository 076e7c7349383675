// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "convoy/core/base/suggest.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/chat_fields.h"
#include "convoy/data/datasets/row_formats.h"
#include "convoy/data/datasets/utf8.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Schema, std::string_view>, 8> kNames = {{
    {Schema::Messages, "messages"},
    {Schema::ShareGpt, "sharegpt"},
    {Schema::Alpaca, "alpaca"},
    {Schema::PromptCompletion, "prompt_completion"},
    {Schema::Triple, "triple"},
    {Schema::Rendered, "rendered"},
    {Schema::Text, "text"},
    {Schema::Loose, "loose"},
}};
constexpr std::array<std::string_view, 6> kUserKeys = {"user",  "question",    "prompt",
                                                       "input", "instruction", "query"};
constexpr std::array<std::string_view, 5> kAssistantKeys = {"assistant", "answer", "response",
                                                            "target", "output"};

bool has(const Json& value, std::string_view key) {
  const auto found = value.find(key);
  return found != value.end() && !found->is_null();
}

template <size_t count>
std::vector<std::string> present(const Json& value,
                                 const std::array<std::string_view, count>& keys) {
  std::vector<std::string> found;
  for (const std::string_view key : keys)
    if (has(value, key)) found.emplace_back(key);
  return found;
}

bool is_pair_list(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_object();
}

bool is_loose(const Json& value) {
  if (value.is_array()) return is_pair_list(value) && !present(value[1], kAssistantKeys).empty();
  return !present(value, kUserKeys).empty() && !present(value, kAssistantKeys).empty();
}

bool matches(const Json& value, Schema schema, const SchemaConfig& config) {
  if (schema == Schema::Loose) return is_loose(value);
  if (!value.is_object()) return false;
  const bool instructed = has(value, "instruction") && has(value, "output");
  switch (schema) {
    case Schema::Messages:
      return has(value, "messages");
    case Schema::ShareGpt:
      return has(value, "conversations");
    case Schema::Alpaca:
      return instructed && config.task != "pretrain";
    case Schema::PromptCompletion:
      return has(value, "prompt") && has(value, "completion");
    case Schema::Triple:
      return has(value, "system") && has(value, "user") && has(value, "assistant");
    case Schema::Rendered:
      return has(value, "input") && has(value, "target");
    case Schema::Text:
      return has(value, config.text_field) || (instructed && config.task == "pretrain");
    case Schema::Loose:
      break;
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string keys_of(const Json& value) {
  if (!value.is_object()) return fmt::format("a JSON {}", value.type_name());
  std::vector<std::string> keys;
  for (const auto& [key, field] : value.items())
    keys.push_back(field.is_null() ? key + " (null)" : key);
  return keys.empty() ? "no keys" : fmt::format("the keys {}", joined(keys));
}

Json turn(std::string_view role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Sample chat(Json messages) {
  Sample sample;
  sample.kind = Sample::Kind::Chat;
  sample.messages = std::move(messages);
  return sample;
}

Sample plain_completion(std::string prompt, std::string completion) {
  Sample sample;
  sample.kind = Sample::Kind::PromptCompletion;
  sample.prompt = std::move(prompt);
  sample.completion = std::move(completion);
  return sample;
}

// The only key of `keys` that the row has.
template <size_t count>
std::string only_key(const RowFields& fields, const Json& value,
                     const std::array<std::string_view, count>& keys, std::string_view what) {
  const std::vector<std::string> found = present(value, keys);
  if (found.size() == 1) return found[0];
  if (found.empty())
    fields.fail(fmt::format("wanted the {} under one of {}", what, fmt::join(keys, ", ")));
  fields.fail(fmt::format("ambiguous row: {} could each be the {}", joined(found), what),
              "rename the others, or force another data.schema");
}

Sample loose_sample(RowFields& fields) {
  Sample sample = chat(Json::array());
  const Json& value = fields.value();
  if (value.is_array()) {
    if (!is_pair_list(value)) fields.fail("wanted [\"question\", {\"answer\": ...}]");
    RowFields answer = fields.nested(value[1]);
    sample.messages.push_back(turn("user", fields.cut(value[0].get<std::string>())));
    sample.messages.push_back(turn(
        "assistant", answer.text(only_key(answer, value[1], kAssistantKeys, "assistant's text"))));
    fields.absorb(answer);
    return sample;
  }
  const std::string user = only_key(fields, value, kUserKeys, "user's text");
  const std::string assistant = only_key(fields, value, kAssistantKeys, "assistant's text");
  if (const std::string system = fields.text_or_empty("system"); !system.empty())
    sample.messages.push_back(turn("system", system));
  sample.messages.push_back(turn("user", fields.text(user)));
  sample.messages.push_back(turn("assistant", fields.text(assistant)));
  return sample;
}

// instruction + "\n" + input, as SFT-Play documents it; the input may be empty or absent.
std::string instruction_text(RowFields& fields) {
  const std::string instruction = fields.text("instruction");
  const std::string input = fields.text_or_empty("input");
  return input.empty() ? instruction : instruction + "\n" + input;
}

Sample prompt_completion_sample(RowFields& fields) {
  const Json& prompt = fields.member("prompt");
  const Json& completion = fields.member("completion");
  if (prompt.is_string() && completion.is_string())
    return plain_completion(fields.text("prompt"), fields.text("completion"));
  if (!prompt.is_array() || !completion.is_array())
    fields.fail("wanted prompt and completion as two strings, or as two lists of messages");
  Sample sample = chat(fields.messages("prompt"));
  sample.kind = Sample::Kind::ChatPromptCompletion;
  sample.completion_messages = fields.messages("completion");
  return sample;
}

Sample triple_sample(RowFields& fields) {
  Sample sample = chat(Json::array());
  if (std::string system = fields.text("system"); !system.empty())
    sample.messages.push_back(turn("system", std::move(system)));
  sample.messages.push_back(turn("user", fields.text("user")));
  sample.messages.push_back(turn("assistant", fields.text("assistant")));
  return sample;
}

Sample text_sample(RowFields& fields, const SchemaConfig& config) {
  Sample sample;
  sample.kind = Sample::Kind::Text;
  if (config.task != "pretrain" || has(fields.value(), config.text_field)) {
    sample.text = fields.text(config.text_field);
  } else {
    sample.text = instruction_text(fields) + "\n" + fields.text("output");
  }
  return sample;
}

Sample to_sample(RowFields& fields, Schema schema, const SchemaConfig& config) {
  if (schema != Schema::Loose && !fields.value().is_object())
    fields.fail(fmt::format("wanted an object, found a JSON {}", fields.value().type_name()));
  switch (schema) {
    case Schema::Messages:
      return chat(fields.messages("messages"));
    case Schema::ShareGpt:
      return chat(fields.conversations());
    case Schema::Alpaca:
      return chat(Json::array(
          {turn("user", instruction_text(fields)), turn("assistant", fields.text("output"))}));
    case Schema::PromptCompletion:
      return prompt_completion_sample(fields);
    case Schema::Triple:
      return triple_sample(fields);
    case Schema::Rendered:
      return plain_completion(fields.text("input"), fields.text("target"));
    case Schema::Text:
      return text_sample(fields, config);
    case Schema::Loose:
      return loose_sample(fields);
  }
  CONVOY_INVARIANT(false, "schema {}", static_cast<int>(schema));
}

bool has_chat_turns(const Sample& sample) {
  return sample.kind == Sample::Kind::Chat || sample.kind == Sample::Kind::ChatPromptCompletion;
}

void add_system_turn(Sample& sample, const std::string& system_prompt) {
  if (system_prompt.empty()) return;
  for (const Json& message : sample.messages)
    if (message["role"] == "system" || message["role"] == "developer") return;
  sample.messages.insert(sample.messages.begin(), turn("system", system_prompt));
}

// A column named `tools` or `documents` belongs to the template when a row holds a conversation;
// elsewhere it may be anything.
RowFields::Columns template_columns(Schema schema) {
  const bool conversation = schema == Schema::Messages || schema == Schema::ShareGpt ||
                            schema == Schema::PromptCompletion;
  return conversation ? RowFields::Columns::KwargsToolsDocuments : RowFields::Columns::Kwargs;
}

Sample finished(Sample sample, const Row& row, const RowFields& fields, Schema schema,
                const SchemaConfig& config) {
  if (has_chat_turns(sample)) {
    add_system_turn(sample, config.system_prompt);
    sample.variables = fields.template_variables(config.template_kwargs, template_columns(schema));
  }
  sample.weight_like = fields.weight_like();
  sample.file = row.file;
  sample.line = row.line;
  sample.index = row.index;
  return sample;
}

}  // namespace

std::string_view schema_name(Schema schema) {
  for (const auto& [known, name] : kNames)
    if (known == schema) return name;
  CONVOY_INVARIANT(false, "schema {}", static_cast<int>(schema));
}

Schema schema_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [schema, known] : kNames) {
    if (known == name) return schema;
    names.emplace_back(known);
  }
  throw ConfigError(fmt::format("`{}` is no row schema{}; known: auto, {}", name,
                                did_you_mean(name, names), joined(names)),
                    {.key = "data.schema"});
}

SchemaConfig SchemaConfig::from(const settings::DataSettings& data, std::string task) {
  return {
      .schema = data.schema,
      .task = std::move(task),
      .text_field = data.text_field,
      .text_rows = data.text_rows,
      .system_prompt = data.system_prompt,
      .template_kwargs = settings::template_kwargs(data.template_kwargs, "data.template_kwargs"),
      .max_field_chars = data.max_field_chars};
}

std::vector<Schema> matching_schemas(const Row& row, const SchemaConfig& config) {
  std::vector<Schema> found;
  for (const auto& [schema, name] : kNames)
    if ((schema != Schema::Loose || found.empty()) && matches(row.value, schema, config))
      found.push_back(schema);
  return found;
}

Schema detect_schema(const Row& row, const SchemaConfig& config) {
  if (config.schema != "auto") return schema_named(config.schema);
  const ErrorLocation location{.file = row.file, .line = row.line};
  const std::vector<Schema> found = matching_schemas(row, config);
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const Schema schema : found) names.emplace_back(schema_name(schema));
  if (found.empty()) {
    ErrorLocation hinted = location;
    hinted.hint =
        "rename the keys to messages, prompt and completion, question and answer, or text; or set "
        "data.schema=text and "
        "data.text_field=KEY";
    throw DataError(fmt::format("row {}: no row schema fits {}", row.index + 1, keys_of(row.value)),
                    hinted);
  }
  ErrorLocation hinted = location;
  hinted.hint = fmt::format("set data.schema to one of {}", joined(names));
  throw DataError(fmt::format("row {}: ambiguous, {} fits {}", row.index + 1, keys_of(row.value),
                              joined(names)),
                  hinted);
}

ConvertedRow convert_row(const Row& row, Schema schema, const SchemaConfig& config) {
  RowFields fields(row, row.value, config.max_field_chars);
  ConvertedRow converted;
  converted.sample = finished(to_sample(fields, schema, config), row, fields, schema, config);
  converted.fields_cut = fields.fields_cut();
  converted.unread = fields.unread();
  return converted;
}

Sample convert_prompt(const Row& row, const SchemaConfig& config) {
  const Json& value = row.value;
  const bool bare_prompt = value.is_object() && has(value, "prompt") && !has(value, "completion") &&
                           present(value, kAssistantKeys).empty() && config.schema == "auto";
  if (!bare_prompt) return convert_row(row, detect_schema(row, config), config).sample;
  RowFields fields(row, value, config.max_field_chars);
  Sample sample = value["prompt"].is_array() ? chat(fields.messages("prompt"))
                                             : plain_completion(fields.text("prompt"), "");
  for (const char* other : {"text", "conversations", "messages"})
    if (has(value, other)) sample.beside_prompt = other;
  return finished(std::move(sample), row, fields, Schema::PromptCompletion, config);
}

}  // namespace convoy::data
