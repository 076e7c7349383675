// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/generate/model_text_engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/generate/engine/thought_ids.h"

namespace convoy::recipes {
namespace {

// The error of CUDA has a type of its own; the error of the CPU is only known by its text.
bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string message = error.what_without_backtrace();
  return message.find("DefaultCPUAllocator") != std::string::npos ||
         message.find("not enough memory") != std::string::npos;
}

process::TextFinish finish_of(generate::FinishReason reason) {
  switch (reason) {
    case generate::FinishReason::Stop:
      return process::TextFinish::Stop;
    case generate::FinishReason::Length:
      return process::TextFinish::Length;
    case generate::FinishReason::NotFinite:
    case generate::FinishReason::GrammarLimit:
      break;
  }
  return process::TextFinish::Error;
}

generate::Request engine_request(const process::TextRequest& request, std::vector<int32_t> ids,
                                 const LoadedModel& loaded) {
  const process::TextSampling& rule = request.sampling;
  return {
      .number = request.number,
      .prompt = std::move(ids),
      .sampling = {.temperature = rule.temperature,
                   .top_k = rule.top_k,
                   .top_p = rule.top_p,
                   .min_p = rule.min_p,
                   .repetition_penalty = rule.repetition_penalty},
      .draw = {.seed = request.draw.seed, .row = request.draw.row, .sample = request.draw.sample},
      .max_new_tokens = rule.max_new_tokens,
      .stop = rule.stop,
      .stop_ids = request.prompt.messages.is_null() ? std::vector<int32_t>() : loaded.turn_end_ids,
      .priority = request.priority};
}

process::TextResult text_result(const generate::Completion& completion) {
  process::TextResult result{.number = completion.number,
                             .finish = finish_of(completion.finish_reason),
                             .text = {},
                             .prompt_tokens = completion.prompt_tokens,
                             .new_tokens = static_cast<int64_t>(completion.token_ids.size())};
  if (completion.finish_reason == generate::FinishReason::GrammarLimit)
    result.error = fmt::format(
        "the schema cannot say token {}: it needs more work than its limits allow, or no token of "
        "the model goes on with it",
        result.new_tokens);
  else if (result.finish == process::TextFinish::Error)
    result.error = fmt::format("the model's logits are not finite at token {}", result.new_tokens);
  else
    result.text = completion.text;
  return result;
}

generate::EngineConfig engine_config(const LoadedModel& loaded, const TextEngineOptions& options,
                                     const Log& log) {
  settings::EngineFlags flags;
  flags.batch_size = options.rows;
  if (options.kv_blocks > 0) flags.kv_blocks = options.kv_blocks;
  if (options.prefill_chunk > 0) flags.prefill_chunk = options.prefill_chunk;
  flags.kv_dtype = options.kv_int8 ? "int8" : "model";
  flags.cuda_graphs = options.cuda_graphs;
  return engine_config(flags, loaded,
                       {.longest_row_tokens = options.longest_row_tokens,
                        .engines_on_host = static_cast<int>(options.workers_on_host)},
                       log);
}

class ModelTextEngine final : public process::TextEngine {
 public:
  ModelTextEngine(const LoadedModel& loaded, const TextEngineOptions& options, const Log& log)
      : loaded_(loaded),
        encoder_(loaded.tokenizer, loaded.template_or_null(), data::Supervision()),
        template_kwargs_(options.template_kwargs),
        grammars_(grammar_compiler(loaded)),
        engine_(*loaded.model, loaded.tokenizer, engine_config(loaded, options, log)),
        max_rows_(static_cast<size_t>(options.rows)) {
    for (const auto& [stage, schema] : options.schemas) grammar_of(schema);
  }

  void submit(process::TextRequest request) override {
    if (request.prompt_likeliest > 0)
      return refuse(request.number, "a model in memory gives no likeliest tokens of a prompt");
    try {
      generate::Request wanted = engine_request(request, prompt_ids(request.prompt), loaded_);
      if (!request.schema.empty())
        wanted.form = form_of(request.schema, wanted.prompt, !request.prompt.messages.is_null());
      if (unfinished_.size() >= most_at_once_) {
        held_back_.push_back(std::move(wanted));
        return;
      }
      begin(std::move(wanted));
    } catch (const Error& error) {
      refuse(request.number, error.sentence());
    }
  }

  void cancel(int64_t number) override {
    if (unfinished_.erase(number) > 0) engine_.cancel(number);
    std::erase_if(held_back_, [number](const auto& request) { return request.number == number; });
    std::erase_if(refused_, [number](const auto& result) { return result.number == number; });
  }

  int64_t unfinished() const override {
    return engine_.unfinished() + static_cast<int64_t>(held_back_.size() + refused_.size());
  }

  std::vector<process::TextResult> step() override {
    let_in();
    std::vector<process::TextResult> results = std::exchange(refused_, {});
    try {
      for (const generate::Completion& completion : engine_.step()) {
        unfinished_.erase(completion.number);
        results.push_back(text_result(completion));
      }
    } catch (const std::bad_alloc&) {
      end_for_memory(results);
    } catch (const c10::Error& error) {
      if (!is_out_of_memory(error)) throw;
      end_for_memory(results);
    }
    return results;
  }

  process::EngineFigures figures() const override {
    process::EngineFigures figures = engine_.figures();
    figures.waiting += static_cast<int64_t>(held_back_.size());
    return figures;
  }

 private:
  void begin(generate::Request request) {
    const int64_t number = request.number;
    engine_.submit(std::move(request));
    unfinished_.insert(number);
  }

  void let_in() {
    while (!held_back_.empty() && unfinished_.size() < most_at_once_) {
      generate::Request request = std::move(held_back_.front());
      held_back_.pop_front();
      const int64_t number = request.number;
      try {
        begin(std::move(request));
      } catch (const Error& error) {
        refuse(number, error.sentence());
      }
    }
  }

  void refuse(int64_t number, const std::string& why) {
    refused_.push_back({.number = number, .finish = process::TextFinish::Error, .error = why});
  }

  // Ends all unfinished texts after memory ran out, because a failed step leaves no usable state.
  // The same texts fit when fewer are generated at once.
  void end_for_memory(std::vector<process::TextResult>& results) {
    most_at_once_ = std::max<size_t>(1, std::min(unfinished_.size(), max_rows_) / 2);
    for (const int64_t number : std::exchange(unfinished_, {})) {
      engine_.cancel(number);
      results.push_back({.number = number,
                         .finish = process::TextFinish::Error,
                         .error = "memory ran out while the text was made; --low-memory takes less",
                         .error_may_pass = true});
    }
  }

  const std::shared_ptr<const text::AnswerGrammar>& grammar_of(const std::string& schema) {
    std::shared_ptr<const text::AnswerGrammar>& grammar = by_schema_[schema];
    if (grammar == nullptr) grammar = grammars_.compile({text::GrammarKind::JsonSchema, schema});
    return grammar;
  }

  generate::AnswerForm form_of(const std::string& schema, const std::vector<int32_t>& prompt,
                               bool is_chat) {
    generate::AnswerForm form{.grammar = grammar_of(schema)};
    const generate::ThoughtIds thoughts = generate::thought_ids(prompt, loaded_.tokenizer);
    if (is_chat || thoughts.are_open) form.thoughts = thoughts;
    return form;
  }

  std::vector<int32_t> prompt_ids(const process::Prompt& prompt) const {
    if (!prompt.ids.empty()) return prompt.ids;
    data::Sample sample{.kind = data::Sample::Kind::Text, .text = prompt.text, .file = "a prompt"};
    if (!prompt.messages.is_null()) {
      sample.kind = data::Sample::Kind::Chat;
      sample.messages = prompt.messages;
      sample.variables = prompt.variables.is_null() ? template_kwargs_ : prompt.variables;
    }
    return encoder_.encode_prompt(sample).ids;
  }

  const LoadedModel& loaded_;
  data::SampleEncoder encoder_;
  nlohmann::ordered_json template_kwargs_;
  text::GrammarCompiler grammars_;
  std::map<std::string, std::shared_ptr<const text::AnswerGrammar>> by_schema_;
  generate::Engine engine_;
  size_t max_rows_;
  size_t most_at_once_ = SIZE_MAX;  // limit of requests in the engine; lower after memory ran out
  std::deque<generate::Request> held_back_;   // requests beyond the limit
  std::unordered_set<int64_t> unfinished_;    // numbers of the requests in the engine
  std::vector<process::TextResult> refused_;  // returned by the next step
};

}  // namespace

std::unique_ptr<process::TextEngine> make_text_engine(const LoadedModel& loaded,
                                                      TextEngineOptions options, const Log& log) {
  return std::make_unique<ModelTextEngine>(loaded, options, log);
}

}  // namespace convoy::recipes
