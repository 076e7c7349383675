// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/answering_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/core/base/error.h"

namespace convoy::recipes {

namespace {

Thoughts thoughts_of(const std::vector<generate::AnswerForm>& forms) {
  if (forms.empty() || forms.front().thoughts.end < 0) return Thoughts::None;
  return forms.front().thoughts.are_open ? Thoughts::Open : Thoughts::Possible;
}

// `form_field`: the field of the request that asks for the form.
ApiError cut_by_grammar(const std::string& form_field) {
  return {400,
          fmt::format("`{}`: the grammar cannot say the next token: it needs more work than its "
                      "limits allow, or no token of the model goes on with it; make it simpler",
                      form_field),
          form_field, "invalid_value"};
}

}  // namespace

AnsweringEngine::AnsweringEngine(generate::Engine& engine, const text::Tokenizer& tokenizer,
                                 const AnsweringOptions& options, const Log& log)
    : engine_(engine),
      tokenizer_(tokenizer),
      most_rows_(options.most_rows),
      log_(log),
      metrics_(options.model_name, options.engine_number) {}

void AnsweringEngine::take(ReadRequest read) {
  try {
    if (const auto* error = std::get_if<ApiError>(&read.parsed))
      respond_error(*read.exchange, *error);
    else if (const auto* known = std::get_if<KnownAnswer>(&read.parsed))
      respond_json(*read.exchange, known->json);
    else if (std::holds_alternative<AskedMetrics>(read.parsed))
      read.exchange->respond(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                             metrics_.text(engine_.figures()));
    else
      begin(read);
  } catch (const ApiError& error) {
    respond_error(*read.exchange, error);
  } catch (const Error& error) {
    respond_error(*read.exchange, ApiError(400, error.sentence(), error.location().key));
  }
}

void AnsweringEngine::begin(ReadRequest& read) {
  const AskedAnswers& asked = std::get<AskedAnswers>(read.parsed);
  const ApiRequest& request = asked.request;
  const std::vector<generate::Request> rows = rows_of(asked);
  if (std::ssize(rows_) + std::ssize(rows) > most_rows_)
    throw ApiError(429, "too many answers wait; try again later", {}, "rate_limit_exceeded");
  submit(rows);
  AnswerHead head{.kind = request.kind,
                  .id = fmt::format("{}-{:016x}",
                                    request.kind == ApiKind::Chat ? "chatcmpl" : "cmpl", random_()),
                  .model = request.model,
                  .created = now_seconds(),
                  .tool_format = asked.tool_format,
                  .begins_in_thoughts = asked.begins_in_thoughts,
                  .thoughts = thoughts_of(asked.forms),
                  .reports_usage = request.reports_usage};
  auto answer = std::make_shared<RunningAnswer>(std::move(read.exchange), std::move(head), request,
                                                asked.prompts, tokenizer_);
  answer->begin();
  for (size_t choice = 0; choice < rows.size(); ++choice)
    rows_.emplace(
        rows[choice].number,
        Row{.answer = answer,
            .choice = static_cast<int64_t>(choice),
            .form_field = request.form ? request.form->field : "",
            .times = {.came = read.came, .prompt_tokens = std::ssize(rows[choice].prompt)}});
}

std::vector<generate::Request> AnsweringEngine::rows_of(const AskedAnswers& asked) {
  const ApiRequest& request = asked.request;
  settings::SamplingFlags sampling = request.sampling;
  sampling.seed = request.seed.value_or(static_cast<int64_t>(random_() >> 1));
  std::vector<generate::Request> rows;
  for (size_t prompt = 0; prompt < asked.prompts.size(); ++prompt) {
    for (int64_t sample = 0; sample < sampling.n; ++sample) {
      rows.push_back(answer_request(sampling, static_cast<int64_t>(prompt), sample));
      rows.back().number = next_number_++;
      rows.back().prompt = asked.prompts[prompt];
      rows.back().stop_ids = asked.stop_ids;
      rows.back().adapter = asked.adapter;
      rows.back().num_likeliest = request.top_logprobs;
      rows.back().wants_prompt_logprobs = request.reads_prompt_logprobs();
      rows.back().num_prompt_likeliest =
          std::max(request.echoes_logprobs() ? request.top_logprobs : 0,
                   request.prompt_logprobs.value_or(0));
      rows.back().logit_bias = request.logit_bias;
      if (!asked.forms.empty()) rows.back().form = asked.forms[prompt];
      rows.back().shows_special_tokens = asked.shows_special_tokens;
      rows.back().sampling.frequency_penalty = request.frequency_penalty;
      rows.back().sampling.presence_penalty = request.presence_penalty;
    }
  }
  return rows;
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
  const auto began = ServerMetrics::Clock::now();
  try {
    std::vector<generate::Completion> ended = engine_.step();
    const auto now = ServerMetrics::Clock::now();
    for (generate::Completion& completion : ended) end(std::move(completion), began, now);
    for (auto& [number, row] : rows_) grow(number, row, began, now);
  } catch (const Error& error) {
    log_.warning(fmt::format("a step failed: {}", error.sentence()));
    fail_all(ApiError(500, error.sentence()));
  }
}

void AnsweringEngine::grow(int64_t number, Row& row, ServerMetrics::Clock::time_point began,
                           ServerMetrics::Clock::time_point now) {
  if (!row.times.has_begun() && engine_.has_begun(number)) row.times.began = began;
  const generate::AnswerTokens tokens = engine_.tokens_so_far(number);
  metrics_.note_tokens(row.times, std::ssize(tokens.ids), now);
  if (row.answer->streams()) row.answer->grow(row.choice, engine_.text_so_far(number), tokens);
}

void AnsweringEngine::end(generate::Completion completion, ServerMetrics::Clock::time_point began,
                          ServerMetrics::Clock::time_point now) {
  const auto at = rows_.find(completion.number);
  if (at == rows_.end()) return;
  Row row = at->second;
  rows_.erase(at);
  if (!row.times.has_begun()) row.times.began = began;
  metrics_.note_tokens(row.times, std::ssize(completion.token_ids), now);
  metrics_.note_end(row.times, completion.finish_reason, now);
  const bool is_beyond_limits = completion.finish_reason == generate::FinishReason::GrammarLimit;
  if (!is_beyond_limits && completion.finish_reason != generate::FinishReason::NotFinite)
    return row.answer->end(row.choice, std::move(completion));
  row.answer->fail(is_beyond_limits ? cut_by_grammar(row.form_field)
                                    : ApiError(500, "the model's logits are not finite"));
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
    metrics_.note_abort();
    return true;
  });
}

}  // namespace convoy::recipes
