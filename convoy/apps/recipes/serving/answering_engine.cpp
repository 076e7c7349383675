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

std::string base_name(const ServedNames& names) {
  const auto base =
      std::find_if(names.begin(), names.end(), [](const auto& name) { return name.second == 0; });
  return base == names.end() ? std::string() : base->first;
}

}  // namespace

AnsweringEngine::AnsweringEngine(generate::Engine& engine, const data::SampleEncoder& encoder,
                                 const LoadedModel& loaded, AnsweringOptions options,
                                 const Log& log)
    : engine_(engine),
      loaded_(loaded),
      options_(std::move(options)),
      log_(log),
      tokenizing_(encoder, loaded, options_.template_kwargs),
      metrics_(base_name(options_.names), options_.engine_number),
      tool_format_(tool_format(options_.tool_call_parser, loaded.template_or_null())),
      has_special_tags_(has_special_tags(tool_format_, loaded.tokenizer)) {}

void AnsweringEngine::take(ExchangePtr exchange) {
  try {
    direct(exchange);
  } catch (const ApiError& error) {
    respond_error(*exchange, error);
  } catch (const Error& error) {
    respond_error(*exchange, ApiError(400, error.sentence(), error.location().key));
  }
}

void AnsweringEngine::direct(ExchangePtr& exchange) {
  const std::string_view path = exchange->path();
  const auto check_model = [this](const std::string& name) { adapter_of(name); };
  if (path == "/metrics")
    return exchange->respond(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                             metrics_.text(engine_.figures()));
  if (path == "/tokenize")
    return respond_json(*exchange, tokenizing_.tokenize(exchange->body(), check_model));
  if (path == "/detokenize")
    return respond_json(*exchange, tokenizing_.detokenize(exchange->body(), check_model));
  begin(exchange, path == "/v1/chat/completions" ? ApiKind::Chat : ApiKind::Completion);
}

int64_t AnsweringEngine::adapter_of(const std::string& model) const {
  const auto named = options_.names.find(model);
  if (named != options_.names.end()) return named->second;
  if (model.empty()) throw ApiError(400, "`model` is missing: GET /v1/models lists them", "model");
  throw serving::model_not_served(model);
}

void AnsweringEngine::check_tools(const ApiRequest& request) const {
  if (request.tools.is_null()) return;
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

void AnsweringEngine::begin(ExchangePtr& exchange, ApiKind kind) {
  const auto came = ServerMetrics::Clock::now();
  const ApiRequest request = parse_api_request(kind, exchange->body());
  const int64_t adapter = adapter_of(request.model);
  check_tools(request);
  const std::vector<generate::Request> rows = rows_of(request, adapter);
  check_sizes(rows, kind);
  if (std::ssize(rows_) + std::ssize(rows) > options_.most_rows)
    throw ApiError(429, "too many answers wait; try again later", {}, "rate_limit_exceeded");
  submit(rows);
  AnswerHead head{
      .kind = request.kind,
      .id = fmt::format("{}-{:016x}", kind == ApiKind::Chat ? "chatcmpl" : "cmpl", random_()),
      .model = request.model,
      .created = now_seconds(),
      .tool_format = request.tools.is_null() ? ToolFormat::None : tool_format_};
  auto answer = std::make_shared<RunningAnswer>(std::move(exchange), std::move(head), request,
                                                std::ssize(rows), loaded_.tokenizer);
  answer->begin();
  for (size_t choice = 0; choice < rows.size(); ++choice)
    rows_.emplace(rows[choice].number,
                  Row{.answer = answer,
                      .choice = static_cast<int64_t>(choice),
                      .times = {.came = came, .prompt_tokens = std::ssize(rows[choice].prompt)}});
}

std::vector<generate::Request> AnsweringEngine::rows_of(const ApiRequest& request,
                                                        int64_t adapter) {
  settings::SamplingFlags sampling = request.sampling;
  sampling.seed = request.seed.value_or(static_cast<int64_t>(random_() >> 1));
  if (sampling.max_new_tokens == 0) sampling.max_new_tokens = kNoTokenLimit;
  const std::vector<std::vector<int32_t>> prompts = tokenizing_.prompts(request);
  std::vector<generate::Request> rows;
  for (size_t prompt = 0; prompt < prompts.size(); ++prompt) {
    for (int64_t sample = 0; sample < sampling.n; ++sample) {
      rows.push_back(answer_request(sampling, static_cast<int64_t>(prompt), sample));
      rows.back().number = next_number_++;
      rows.back().prompt = prompts[prompt];
      rows.back().adapter = adapter;
      rows.back().num_likeliest = request.top_logprobs;
      rows.back().logit_bias = request.logit_bias;
      rows.back().shows_special_tokens = has_special_tags_ && !request.tools.is_null();
      rows.back().sampling.frequency_penalty = request.frequency_penalty;
      rows.back().sampling.presence_penalty = request.presence_penalty;
    }
  }
  return rows;
}

// A request that no engine can ever take must not be asked for again.
void AnsweringEngine::check_sizes(const std::vector<generate::Request>& rows, ApiKind kind) const {
  if (std::ssize(rows) > options_.most_rows)
    throw ApiError(400,
                   fmt::format("one request may have {} answers (--batch-size and --max-waiting of "
                               "convoy serve), found {}",
                               options_.most_rows, rows.size()),
                   "n");
  const int64_t most_tokens = loaded_.model->max_positions();
  for (const generate::Request& row : rows)
    if (std::ssize(row.prompt) >= most_tokens)
      throw ApiError(400,
                     fmt::format("the prompt has {} tokens; the model reads at most {} with the "
                                 "answer",
                                 row.prompt.size(), most_tokens),
                     kind == ApiKind::Chat ? "messages" : "prompt", "context_length_exceeded");
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
  if (completion.finish_reason != generate::FinishReason::NotFinite)
    return row.answer->end(row.choice, std::move(completion));
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
    metrics_.note_abort();
    return true;
  });
}

}  // namespace convoy::recipes
