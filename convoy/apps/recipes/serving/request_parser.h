// SPDX-License-Identifier: Apache-2.0
//
// Turns the bodies of requests into token ids and options that the engine takes, or into the error
// in them. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/serving/api_request.h"
#include "convoy/apps/recipes/serving/tokenizing.h"
#include "convoy/apps/recipes/serving/tool_calls.h"
#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::recipes {

// The names that requests may use, and the adapter of each: 0 = none.
using ServedNames = std::map<std::string, int64_t>;

struct ParserOptions {
  ServedNames names;
  Json template_kwargs = Json::object();  // overridden by the variables of a request
  int64_t most_rows = 0;                  // most answers that one request may have
  std::string tool_call_parser = "auto";  // the value of --tool-call-parser
  settings::SamplingSources sampling = {};
  std::vector<std::vector<int32_t>> adapter_end_ids = {};  // by adapter; adapter 1 is first
};

struct AskedAnswers {
  ApiRequest request;
  int64_t adapter = 0;
  std::vector<std::vector<int32_t>> prompts;  // each with request.sampling.n answers
  ToolFormat tool_format = ToolFormat::None;  // how calls in the answers are read
  bool shows_special_tokens = false;
  bool begins_in_thoughts = false;          // the prompt ends with the opening tag of thoughts
  std::vector<int32_t> stop_ids;            // in addition to the engine's end tokens
  std::vector<generate::AnswerForm> forms;  // by prompt; empty: any text, or not compiled yet

  bool needs_forms() const { return request.form && forms.empty(); }
};
struct AskedMetrics {};
struct KnownAnswer {
  Json json;
};
using ParsedRequest = std::variant<AskedAnswers, AskedMetrics, KnownAnswer, ApiError>;

class RequestParser {
 public:
  // Encoder and model must outlive it.
  RequestParser(const data::SampleEncoder& encoder, const LoadedModel& loaded,
                ParserOptions options);

  // The time grows with the length of the prompt: seconds for megabytes. The form of answers is
  // left to with_forms(). Throws no convoy::Error.
  ParsedRequest parse(std::string_view path, std::string_view body) const;
  // Compiles the form of the answers, which takes up to seconds. Throws no convoy::Error.
  ParsedRequest with_forms(AskedAnswers asked) const;

 private:
  ParsedRequest parse_or_throw(std::string_view path, std::string_view body) const;
  void add_forms(AskedAnswers& asked) const;
  AskedAnswers asked_answers(ApiRequest request) const;
  int64_t adapter_of(const std::string& model) const;
  std::vector<generate::AnswerForm> forms_of(
      const AskedForm& form, ApiKind kind, const std::vector<std::vector<int32_t>>& prompts) const;
  std::shared_ptr<const text::AnswerGrammar> compiled(const text::GrammarSource& source,
                                                      const std::string& field) const;
  std::shared_ptr<const text::AnswerGrammar> grammar_of(const AskedForm& form) const;
  // These throw when the model can never answer the request.
  void check_tools(const ApiRequest& request) const;
  void check_number(const ApiRequest& request) const;
  void check_lengths(const std::vector<std::vector<int32_t>>& prompts, ApiKind kind) const;

  const LoadedModel& loaded_;
  ParserOptions options_;
  Tokenizing tokenizing_;
  ToolFormat tool_format_;
  CallTags call_tags_;
  text::GrammarCompiler grammars_;
};

}  // namespace convoy::recipes
