// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/answering_engine.h"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "convoy/apps/recipes/answer_prompts.h"
#include "convoy/core/base/error.h"

namespace convoy::recipes {
namespace {

// The engine ends a text at the model's last position.
constexpr int64_t kNoTokenLimit = std::numeric_limits<int32_t>::max();

}  // namespace

AnsweringEngine::AnsweringEngine(generate::Engine& engine, const data::SampleEncoder& encoder,
                                 const LoadedModel& loaded, AnsweringOptions options,
                                 const Log& log)
    : engine_(engine),
      encoder_(encoder),
      loaded_(loaded),
      options_(std::move(options)),
      log_(log) {}

void AnsweringEngine::take(ExchangePtr exchange) {
  try {
    begin(exchange);
  } catch (const ApiError& error) {
    respond_error(*exchange, error);
  } catch (const Error& error) {
    respond_error(*exchange, ApiError(400, error.sentence()));
  }
}

void AnsweringEngine::begin(ExchangePtr& exchange) {
  const bool is_chat = exchange->path() == "/v1/chat/completions";
  const ApiRequest request =
      parse_api_request(is_chat ? ApiKind::Chat : ApiKind::Completion, exchange->body());
  const auto named = options_.names.find(request.model);
  if (named == options_.names.end())
    throw ApiError(404,
                   fmt::format("the model `{}` is not served: GET /v1/models lists those that are",
                               request.model),
                   "model", "model_not_found");
  const std::vector<generate::Request> rows = rows_of(request, named->second);
  if (std::ssize(rows_) + std::ssize(rows) > options_.most_rows)
    throw ApiError(429, "too many answers wait; try again later", {}, "rate_limit_exceeded");
  submit(rows);
  AnswerHead head{.kind = request.kind,
                  .id = fmt::format("{}-{:016x}", is_chat ? "chatcmpl" : "cmpl", random_()),
                  .model = request.model,
                  .created = now_seconds()};
  auto answer = std::make_shared<RunningAnswer>(std::move(exchange), std::move(head), request,
                                                std::ssize(rows));
  for (size_t row = 0; row < rows.size(); row += static_cast<size_t>(request.sampling.n))
    answer->count_prompt(std::ssize(rows[row].prompt));
  answer->begin();
  for (size_t choice = 0; choice < rows.size(); ++choice)
    rows_.emplace(rows[choice].number, Row{answer, static_cast<int64_t>(choice)});
}

std::vector<generate::Request> AnsweringEngine::rows_of(const ApiRequest& request,
                                                        int64_t adapter) {
  settings::SamplingFlags sampling = request.sampling;
  sampling.seed = request.seed.value_or(static_cast<int64_t>(random_() >> 1));
  if (sampling.max_new_tokens == 0) sampling.max_new_tokens = kNoTokenLimit;
  const std::vector<std::vector<int32_t>> prompts = encode(request);
  std::vector<generate::Request> rows;
  for (size_t prompt = 0; prompt < prompts.size(); ++prompt) {
    for (int64_t sample = 0; sample < sampling.n; ++sample) {
      rows.push_back(answer_request(sampling, static_cast<int64_t>(prompt), sample));
      rows.back().number = next_number_++;
      rows.back().prompt = prompts[prompt];
      rows.back().adapter = adapter;
    }
  }
  return rows;
}

std::vector<std::vector<int32_t>> AnsweringEngine::encode(const ApiRequest& request) const {
  if (request.kind == ApiKind::Chat) {
    Json variables = options_.template_kwargs;
    variables.update(request.template_kwargs);
    return {encoder_
                .encode_prompt({.kind = data::Sample::Kind::Chat,
                                .messages = request.messages,
                                .variables = variables,
                                .file = "messages"})
                .ids};
  }
  std::vector<std::vector<int32_t>> prompts;
  for (const auto& prompt : request.prompts) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt))
      prompts.push_back(checked(*ids));
    else
      prompts.push_back(encoder_
                            .encode_prompt({.kind = data::Sample::Kind::Text,
                                            .text = std::get<std::string>(prompt),
                                            .file = "prompt"})
                            .ids);
  }
  return prompts;
}

const std::vector<int32_t>& AnsweringEngine::checked(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids)
    if (id >= loaded_.tokenizer.vocab_size())
      throw ApiError(400, fmt::format("the vocabulary has no token {}", id), "prompt");
  return ids;
}

void AnsweringEngine::submit(const std::vector<generate::Request>& rows) {
  std::vector<int64_t> submitted;
  try {
    for (const generate::Request& row : rows) {
      engine_.submit(row);
      submitted.push_back(row.number);
    }
  } catch (const Error&) {
    for (const int64_t number : submitted) engine_.cancel(number);
    throw;
  }
}

void AnsweringEngine::step() {
  cancel_where([](const RunningAnswer& answer) { return !answer.is_open(); });
  try {
    for (generate::Completion& ended : engine_.step()) end(std::move(ended));
  } catch (const Error& error) {
    log_.warning(fmt::format("a step failed: {}", error.sentence()));
    return fail_all(ApiError(500, error.sentence()));
  }
  for (const auto& [number, row] : rows_)
    if (row.answer->streams()) row.answer->grow(row.choice, engine_.text_so_far(number));
}

void AnsweringEngine::end(generate::Completion completion) {
  const auto at = rows_.find(completion.number);
  if (at == rows_.end()) return;
  const Row row = at->second;
  rows_.erase(at);
  if (completion.finish_reason != generate::FinishReason::NotFinite)
    return row.answer->end(row.choice, std::move(completion), loaded_.tokenizer);
  row.answer->fail(ApiError(500, "the model's logits are not finite"));
  cancel_where([&row](const RunningAnswer& answer) { return &answer == row.answer.get(); });
}

void AnsweringEngine::fail_all(const ApiError& error) {
  std::set<std::shared_ptr<RunningAnswer>> answers;
  for (const auto& [number, row] : rows_) answers.insert(row.answer);
  for (const std::shared_ptr<RunningAnswer>& answer : answers) answer->fail(error);
  cancel_where([](const RunningAnswer&) { return true; });
}

void AnsweringEngine::cancel_where(const std::function<bool(const RunningAnswer&)>& is_meant) {
  std::erase_if(rows_, [&](const auto& row) {
    if (!is_meant(*row.second.answer)) return false;
    engine_.cancel(row.first);
    return true;
  });
}

}  // namespace convoy::recipes
