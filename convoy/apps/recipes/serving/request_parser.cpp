// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/request_parser.h"

#include <fmt/format.h>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/serving/tool_call_form.h"
#include "convoy/core/base/error.h"
#include "convoy/generate/engine/thought_ids.h"

namespace convoy::recipes {

RequestParser::RequestParser(const data::SampleEncoder& encoder, const LoadedModel& loaded,
                             ParserOptions options)
    : loaded_(loaded),
      options_(std::move(options)),
      tokenizing_(encoder, loaded, options_.template_kwargs),
      tool_format_(tool_format(options_.tool_call_parser, loaded.template_or_null())),
      call_tags_(call_tags(tool_format_, loaded.tokenizer)),
      grammars_(grammar_compiler(loaded)) {}

namespace {

template <class Parse>
ParsedRequest parsed_or_error(const Parse& parse) {
  try {
    return parse();
  } catch (const ApiError& error) {
    return error;
  } catch (const Error& error) {
    return ApiError(400, error.sentence(), error.location().key);
  }
}

}  // namespace

ParsedRequest RequestParser::parse(std::string_view path, std::string_view body) const {
  return parsed_or_error([&] { return parse_or_throw(path, body); });
}

ParsedRequest RequestParser::with_forms(AskedAnswers asked) const {
  return parsed_or_error([&]() -> ParsedRequest {
    add_forms(asked);
    return std::move(asked);
  });
}

ParsedRequest RequestParser::parse_or_throw(std::string_view path, std::string_view body) const {
  const auto check_model = [this](const std::string& name) { adapter_of(name); };
  if (path == "/metrics") return AskedMetrics();
  if (path == "/tokenizer_info") return KnownAnswer{tokenizing_.info()};
  if (path == "/tokenize") return KnownAnswer{tokenizing_.tokenize(body, check_model)};
  if (path == "/detokenize") return KnownAnswer{tokenizing_.detokenize(body, check_model)};
  const bool is_chat = path == "/v1/chat/completions";
  return asked_answers(
      parse_api_request(is_chat ? ApiKind::Chat : ApiKind::Completion, body, options_.sampling));
}

AskedAnswers RequestParser::asked_answers(ApiRequest request) const {
  AskedAnswers asked;
  asked.adapter = adapter_of(request.model);
  check_tools(request);
  check_number(request);
  asked.prompts = tokenizing_.prompts(request);
  check_lengths(asked.prompts, request.kind);
  if (!request.tools.tools.is_null()) {
    asked.tool_format = tool_format_;
    asked.shows_special_tokens = call_tags_.are_special();
    asked.begins_in_thoughts = opens_thoughts(asked.prompts.front(), loaded_.tokenizer);
    if (request.tools.rules.bind())
      request.form = form_of_calls(request.tools.rules, tool_format_, call_tags_);
  }
  if (request.kind == ApiKind::Chat) asked.stop_ids = loaded_.turn_end_ids;
  if (asked.adapter > 0 && !options_.adapter_end_ids.empty()) {
    const auto& ends = options_.adapter_end_ids.at(static_cast<size_t>(asked.adapter - 1));
    asked.stop_ids.insert(asked.stop_ids.end(), ends.begin(), ends.end());
  }
  asked.request = std::move(request);
  return asked;
}

void RequestParser::add_forms(AskedAnswers& asked) const {
  asked.forms = forms_of(*asked.request.form, asked.request.kind, asked.prompts);
  asked.begins_in_thoughts = false;  // the thoughts are told from the answer by their tokens
  const int32_t end_of_thoughts = asked.forms.front().thoughts.end;
  asked.shows_special_tokens |=
      end_of_thoughts >= 0 && loaded_.tokenizer.is_special(end_of_thoughts);
}

std::shared_ptr<const text::AnswerGrammar> RequestParser::compiled(
    const text::GrammarSource& source, const std::string& field) const {
  try {
    return grammars_.compile(source);
  } catch (const ConfigError& error) {
    throw ApiError(400, fmt::format("`{}`: {}", field, error.sentence()), field, "invalid_value");
  }
}

std::shared_ptr<const text::AnswerGrammar> RequestParser::grammar_of(const AskedForm& form) const {
  try {
    return compiled(form.source, form.field);
  } catch (const ApiError&) {
    // The error of the part that cannot be honoured names that part.
    for (const AskedForm::Part& part : form.parts) compiled(part.source, part.field);
    throw;
  }
}

std::vector<generate::AnswerForm> RequestParser::forms_of(
    const AskedForm& form, ApiKind kind, const std::vector<std::vector<int32_t>>& prompts) const {
  const std::shared_ptr<const text::AnswerGrammar> grammar = grammar_of(form);
  std::vector<generate::AnswerForm> forms;
  for (const std::vector<int32_t>& prompt : prompts) {
    forms.push_back({.grammar = grammar});
    if (kind != ApiKind::Chat) continue;
    forms.back().thoughts = generate::thought_ids(prompt, loaded_.tokenizer);
    if (opens_thoughts(prompt, loaded_.tokenizer) && !forms.back().thoughts.are_open)
      throw ApiError(400,
                     fmt::format("`{}`: the prompt opens thoughts whose end is no token of the "
                                 "tokenizer, so the answer's beginning cannot be told",
                                 form.field),
                     form.field, "unsupported_parameter");
  }
  return forms;
}

int64_t RequestParser::adapter_of(const std::string& model) const {
  const auto named = options_.names.find(model);
  if (named != options_.names.end()) return named->second;
  if (model.empty()) throw ApiError(400, "`model` is missing: GET /v1/models lists them", "model");
  throw serving::model_not_served(model);
}

void RequestParser::check_tools(const ApiRequest& request) const {
  if (request.tools.tools.is_null()) return;
  const text::ChatTemplate* const chat_template = loaded_.template_or_null();
  if (chat_template != nullptr && !chat_template->mentions("tools"))
    throw ApiError(400, "the model's chat template has no place for tools", "tools",
                   "unsupported_parameter");
  if (tool_format_ == ToolFormat::None && options_.tool_call_parser != "none")
    throw ApiError(400,
                   "the chat template does not tell how the model writes tool calls; "
                   "--tool-call-parser of convoy serve does, or leaves them in the text",
                   "tools", "unsupported_parameter");
}

void RequestParser::check_number(const ApiRequest& request) const {
  const int64_t prompts = request.kind == ApiKind::Chat ? 1 : std::ssize(request.prompts);
  const int64_t answers = prompts * request.sampling.n;
  if (answers > options_.most_rows)
    throw ApiError(400,
                   fmt::format("one request may have {} answers (--batch-size and --max-waiting of "
                               "convoy serve), found {}",
                               options_.most_rows, answers),
                   "n");
}

void RequestParser::check_lengths(const std::vector<std::vector<int32_t>>& prompts,
                                  ApiKind kind) const {
  const int64_t most_tokens = loaded_.model->max_positions();
  for (const std::vector<int32_t>& prompt : prompts)
    if (std::ssize(prompt) >= most_tokens)
      throw ApiError(400,
                     fmt::format("the prompt has {} tokens; the model reads at most {} with the "
                                 "answer",
                                 prompt.size(), most_tokens),
                     kind == ApiKind::Chat ? "messages" : "prompt", "context_length_exceeded");
}

}  // namespace convoy::recipes
