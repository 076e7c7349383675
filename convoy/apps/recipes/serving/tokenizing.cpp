// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/tokenizing.h"

#include <fmt/format.h>

#include "convoy/apps/recipes/serving/api_messages.h"
#include "convoy/apps/recipes/serving/api_tools.h"

namespace convoy::recipes {
namespace {

void check_named_model(FieldReader& fields, const Tokenizing::CheckModel& check_model) {
  const std::string model = fields.text("model");
  if (!model.empty()) check_model(model);  // all models of a server have the same tokenizer
}

text::SpecialTokens special_tokens(FieldReader& fields, bool absent) {
  return fields.flag("add_special_tokens", absent) ? text::SpecialTokens::Add
                                                   : text::SpecialTokens::Omit;
}

}  // namespace

std::vector<std::vector<int32_t>> Tokenizing::prompts(const ApiRequest& request) const {
  if (request.kind == ApiKind::Chat)
    return {
        encoder_
            .encode_prompt({.kind = data::Sample::Kind::Chat,
                            .messages = request.messages,
                            .variables = variables(request.template_kwargs, request.tools.tools),
                            .file = "messages",
                            .index = -1})
            .ids};
  std::vector<std::vector<int32_t>> prompts;
  for (const auto& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt))
      prompts.push_back(checked(*ids, "prompt"));
    else
      prompts.push_back(encoder_
                            .encode_prompt({.kind = data::Sample::Kind::Text,
                                            .text = std::get<std::string>(prompt),
                                            .file = "prompt",
                                            .index = -1})
                            .ids);
  }
  return prompts;
}

Json Tokenizing::info() const {
  const text::Tokenizer& tokenizer = loaded_.tokenizer;
  const auto token = [&](std::optional<int32_t> id) {
    return id ? Json(tokenizer.decode({*id}, false)) : Json();
  };
  const text::ChatTemplate* const chat_template = loaded_.template_or_null();
  return {{"tokenizer_class", "convoy"},
          {"bos_token", token(tokenizer.bos_id())},
          {"eos_token", token(tokenizer.eos_id())},
          {"pad_token", token(tokenizer.pad_id())},
          {"add_bos_token", tokenizer.adds_bos()},
          {"model_max_length", loaded_.model->max_positions()},
          {"chat_template", chat_template == nullptr ? Json() : Json(chat_template->text())}};
}

Json Tokenizing::tokenize(std::string_view body, const CheckModel& check_model) const {
  const Json object = parse_object(body);
  FieldReader fields(object);
  check_named_model(fields, check_model);
  const bool writes_tokens = fields.flag("return_token_strs");
  if (fields.find("messages") != nullptr && fields.find("prompt") != nullptr)
    throw ApiError(400, "found both `prompt` and `messages`; leave one out", "prompt",
                   "invalid_value");
  const std::vector<int32_t> ids =
      fields.find("messages") != nullptr ? chat_tokens(fields) : text_tokens(fields);
  fields.require_nothing_else();
  Json texts;
  if (writes_tokens) {
    texts = Json::array();
    for (const int32_t id : ids) texts.push_back(loaded_.tokenizer.piece(id));
  }
  return {{"count", ids.size()},
          {"max_model_len", loaded_.model->max_positions()},
          {"tokens", ids},
          {"token_strs", texts}};
}

std::vector<int32_t> Tokenizing::chat_tokens(FieldReader& fields) const {
  const Json messages = read_messages(fields);
  const Json tools = read_tools(fields).tools;
  const Json kwargs = read_template_kwargs(fields);
  fields.require_neutral("continue_final_message", {false});
  const std::string text = encoder_.render({.kind = data::Sample::Kind::Chat,
                                            .messages = messages,
                                            .variables = variables(kwargs, tools),
                                            .file = "messages",
                                            .index = -1},
                                           fields.flag("add_generation_prompt", true));
  return loaded_.tokenizer.encode(text, special_tokens(fields, false)).ids;
}

std::vector<int32_t> Tokenizing::text_tokens(FieldReader& fields) const {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr || !prompt->is_string())
    throw ApiError(400, "`prompt` must be a text; a chat is given as `messages`", "prompt");
  const auto text = prompt->get<std::string>();
  const text::SpecialTokens special = special_tokens(fields, true);
  if (special == text::SpecialTokens::Omit || text.empty())
    return loaded_.tokenizer.encode(text, special).ids;
  return encoder_
      .encode_prompt(
          {.kind = data::Sample::Kind::Text, .text = text, .file = "prompt", .index = -1})
      .ids;
}

Json Tokenizing::detokenize(std::string_view body, const CheckModel& check_model) const {
  const Json object = parse_object(body);
  FieldReader fields(object);
  check_named_model(fields, check_model);
  const Json* tokens = fields.find("tokens");
  if (tokens == nullptr || !tokens->is_array())
    throw ApiError(400, "`tokens` must be a list of ids", "tokens");
  const std::vector<int32_t> ids = read_ids(*tokens, "tokens");
  fields.require_nothing_else();
  return {{"prompt", loaded_.tokenizer.decode(checked(ids, "tokens"), false)}};
}

Json Tokenizing::variables(const Json& kwargs, const Json& tools) const {
  Json variables = template_kwargs_;
  variables.update(kwargs);
  if (!tools.is_null()) variables["tools"] = tools;
  return variables;
}

const std::vector<int32_t>& Tokenizing::checked(const std::vector<int32_t>& ids,
                                                const char* field) const {
  for (const int32_t id : ids)
    if (id >= loaded_.tokenizer.vocab_size())
      throw ApiError(400, fmt::format("the vocabulary has no token {}", id), field);
  return ids;
}

}  // namespace convoy::recipes
