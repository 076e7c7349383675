// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/generate/engine/engine_step.h"
#include "convoy/generate/engine/kv_budget.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/paged_attention/paged_head_sizes.h"

namespace convoy::generate {
namespace {

constexpr int64_t kBlockTokens = kernels::kBlockTokensStep;

EngineConfig completed(EngineConfig config, const nn::CausalLm& model,
                       const text::Tokenizer& tokenizer) {
  if (config.longest_row_tokens <= 0) config.longest_row_tokens = model.max_positions();
  config.longest_row_tokens = std::min(config.longest_row_tokens, model.max_positions());
  if (const auto eos = tokenizer.eos_id()) config.end_ids.push_back(*eos);
  return config;
}

KvBudget budget_of(const EngineConfig& config) {
  return {.block_tokens = kBlockTokens,
          .max_rows = config.max_rows,
          .longest_row_tokens = config.longest_row_tokens,
          .step_tokens = config.prefill_chunk,
          .blocks = config.kv_blocks,
          .memory_bytes = config.kv_memory_bytes,
          .element = config.kv_element,
          .shares_prefixes = config.shares_prefixes};
}

std::optional<int64_t> prefix_states(const nn::KvGeometry& geometry, const EngineConfig& config) {
  if (!geometry.has_states()) return {};
  return num_prefix_states(geometry, budget_of(config));
}

bool heads_fit_kernels(const nn::KvGeometry& geometry) {
  const std::vector<nn::KvLayerGroup> groups = nn::layer_groups(geometry);
  return std::all_of(groups.begin(), groups.end(), [](const nn::KvLayerGroup& group) {
    return kernels::fits_paged_kernels(group.heads.head_dim);
  });
}

std::vector<int64_t> sizes(const std::vector<scheduler::LayerGroup>& groups) {
  std::vector<int64_t> num_blocks;
  for (const scheduler::LayerGroup& group : groups) num_blocks.push_back(group.num_blocks);
  return num_blocks;
}

}  // namespace

Engine::Engine(nn::CausalLm& model, const text::Tokenizer& tokenizer, EngineConfig config)
    : model_(model),
      tokenizer_(tokenizer),
      config_(completed(std::move(config), model, tokenizer)),
      pickable_ids_(std::min(model.vocab_size(), tokenizer.vocab_size())),
      heads_fit_kernels_(heads_fit_kernels(model.kv_geometry())),
      groups_(kv_blocks(model.kv_geometry(), budget_of(config_))),
      scheduler_({.block_tokens = kBlockTokens,
                  .max_rows = config_.max_rows,
                  .step_tokens = config_.prefill_chunk,
                  .shares_prefixes = config_.shares_prefixes,
                  .prefix_states = prefix_states(model.kv_geometry(), config_),
                  .groups = groups_}),
      cache_(model.kv_geometry(), kBlockTokens, sizes(groups_), config_.kv_element,
             config_.max_rows + num_prefix_states(model.kv_geometry(), budget_of(config_))),
      bound_rows_of_lexer_(static_cast<size_t>(std::max(at::get_num_threads(), 1))) {}

Engine::~Engine() = default;

// Rows of different spaces share no prefix. The keys of a prefix depend on the adapter and on the
// rotation, so each pair of them has its own space. A row whose prompt gets log-probabilities has a
// space of its own, below 0, because the hidden states of a shared prefix are gone.
int64_t Engine::prefix_space(const Request& request, int64_t first_position) {
  if (request.wants_prompt_logprobs) return -++num_private_spaces_;
  return 2 * request.adapter + (first_position > 0 ? 1 : 0);
}

void Engine::submit(Request request) {
  check_request(request, pickable_ids_);
  const auto tokens = static_cast<int64_t>(request.prompt.size());
  if (tokens <= 0)
    throw DataError(fmt::format("prompt {} has no tokens", request.number),
                    {.hint = "write a text into it"});
  if (tokens >= model_.max_positions())
    throw DataError(
        fmt::format("prompt {} has {} tokens, the model reads at most {} with the answer",
                    request.number, tokens, model_.max_positions()),
        {.hint = "shorten the prompt"});
  const int64_t num_adapters = config_.adapters == nullptr ? 0 : config_.adapters->size();
  if (request.adapter < 0 || request.adapter > num_adapters)
    throw DataError(fmt::format("prompt {} needs adapter {}, the engine has {}", request.number,
                                request.adapter, num_adapters),
                    {.hint = "load the adapter before the engine starts"});
  const int64_t most_tokens =
      std::min(tokens + std::max<int64_t>(1, request.max_new_tokens), model_.max_positions());
  if (!scheduler_.fits(most_tokens))
    throw DataError(
        fmt::format("prompt {} and its answer may have {} tokens, more than the KV cache holds",
                    request.number, most_tokens),
        {.hint = "raise --kv-blocks, or allow fewer new tokens"});
  if (most_tokens > config_.longest_row_tokens) {
    config_.longest_row_tokens = most_tokens;
    first_recorded_ = nullptr;
    step_kinds_.clear();  // their tables have too few positions
  }
  const int64_t number = request.number;
  const int64_t first_position = model_.first_position(most_tokens);
  std::optional<RowGrammar> grammar = row_grammar(request);
  if (grammar) ++bound_rows_of_lexer_[grammar->lexer()];
  scheduler_.add({.number = number,
                  .prompt = std::exchange(request.prompt, {}),
                  .most_tokens = most_tokens,
                  .priority = request.priority,
                  .prefix_space = prefix_space(request, first_position)});
  AnswerText answer(tokenizer_, config_.end_ids, request, most_tokens - tokens);
  rows_.emplace(number, std::make_shared<Row>(Row{.request = std::move(request),
                                                  .prompt_tokens = tokens,
                                                  .first_position = first_position,
                                                  .answer = std::move(answer),
                                                  .logprobs = {},
                                                  .likeliest = {},
                                                  .prompt_logprobs = {},
                                                  .grammar = std::move(grammar)}));
}

std::optional<RowGrammar> Engine::row_grammar(const Request& request) const {
  if (request.form.grammar == nullptr) return {};
  CONVOY_INVARIANT(request.form.grammar->num_ids() == pickable_ids_,
                   "a grammar over {} ids for an engine over {}", request.form.grammar->num_ids(),
                   pickable_ids_);
  std::vector<int32_t> end_ids = config_.end_ids;
  end_ids.insert(end_ids.end(), request.stop_ids.begin(), request.stop_ids.end());
  if (end_ids.empty())
    throw ConfigError("the model names no token that ends a text, which a grammar needs",
                      {.hint = "write eos_token into its tokenizer_config.json"});
  const auto freest = std::min_element(bound_rows_of_lexer_.begin(), bound_rows_of_lexer_.end());
  return RowGrammar(request.form, std::move(end_ids),
                    static_cast<size_t>(freest - bound_rows_of_lexer_.begin()));
}

int64_t Engine::num_bound_rows() const {
  return std::accumulate(bound_rows_of_lexer_.begin(), bound_rows_of_lexer_.end(), int64_t{0});
}

void Engine::cancel(int64_t number) {
  const auto is_it = [number](const Completion& ended) { return ended.number == number; };
  if (std::erase_if(ended_, is_it) == 0) remove(number);
}

void Engine::remove(int64_t number) {
  scheduler_.remove(number);
  const auto found = rows_.find(number);
  if (found == rows_.end()) return;
  if (const auto& grammar = found->second->grammar) --bound_rows_of_lexer_[grammar->lexer()];
  rows_.erase(found);
}

std::string Engine::text_so_far(int64_t number) const {
  return rows_.at(number)->answer.text_so_far();
}

bool Engine::has_begun(int64_t number) const {
  return scheduler_.cached_tokens(number).has_value();
}

AnswerTokens Engine::tokens_so_far(int64_t number) const {
  const Row& row = *rows_.at(number);
  return {row.answer.tokens(), row.logprobs, row.likeliest};
}

std::vector<Completion> Engine::step() {
  const at::NoGradGuard no_grad;
  c10::OptionalStreamGuard on_stream;
  if (const auto stream = stream_of_steps()) on_stream.reset_stream(*stream);
  const auto begin = std::chrono::steady_clock::now();
  // The rows of a failed step are computed again, so the host first reads all their tokens.
  if (std::exchange(step_failed_, true)) read_down_to(0);
  scheduler_.hold_admissions(fewest_admissions());
  const std::vector<scheduler::PlannedRow> plan = plan_step();
  const int64_t recorded_before = figures_.recorded_steps;
  const bool draws = start(plan);
  // A grammar says a row's next token when it knows the last one.
  read_down_to(draws && reads_late() && num_bound_rows() == 0 ? 1 : 0);
  step_failed_ = false;
  const double seconds = seconds_since(begin);
  costs_.add_step(seconds, figures_.recorded_steps > recorded_before);
  if (!plan.empty()) count(plan, seconds);
  return std::exchange(ended_, {});
}

// The number depends on measured times, so it is 1 where the same command must give the same
// answers.
int64_t Engine::fewest_admissions() const {
  return at::globalContext().deterministicAlgorithms() ? 1
                                                       : costs_.fewest_admissions(config_.max_rows);
}

bool Engine::reads_late() const {
  if (model_.residency() != nullptr && model_.residency()->is_collective()) return false;
  return config_.reads_late.value_or(!model_.device().is_cpu());
}

void Engine::attend_pass() {
  if (model_.residency() == nullptr || !model_.residency()->is_collective()) return;
  const std::vector<int64_t> one{0};
  model_.hidden_states(nn::TokenBatch(one, one, {0, 1}, model_.device()), {});
  const nn::UnitUse use = model_.use_head();
}

std::vector<scheduler::PlannedRow> Engine::plan_step() {
  std::vector<scheduler::PlannedRow> plan = scheduler_.plan();
  if (config_.adapters == nullptr) return plan;
  const auto adapter = [this](const scheduler::PlannedRow& planned) {
    return rows_.at(planned.number)->request.adapter;
  };
  std::stable_sort(plan.begin(), plan.end(),
                   [&](const auto& a, const auto& b) { return adapter(a) < adapter(b); });
  return plan;
}

void Engine::set_adapters(const std::vector<scheduler::PlannedRow>& plan) const {
  if (config_.adapters == nullptr) return;
  std::vector<adapters::AdapterTokens> tokens;
  for (const scheduler::PlannedRow& planned : plan)
    tokens.push_back({.adapter = rows_.at(planned.number)->request.adapter,
                      .tokens = planned.end - planned.begin});
  config_.adapters->set_tokens(tokens);
}

bool Engine::start(const std::vector<scheduler::PlannedRow>& plan) {
  if (plan.empty()) {
    attend_pass();
    return false;
  }
  const at::Tensor unread_ids = unread_.empty() ? at::Tensor() : unread_.back().tokens.ids_R();
  const int64_t planned_keys = recorded_keys(plan);
  device::Upload upload(model_.device());
  Inputs inputs = list_inputs(plan, planned_keys, upload);
  set_adapters(plan);
  const RecordedStep* const recorded =
      planned_keys == 0 ? nullptr : start_recorded(inputs, planned_keys, upload);
  if (recorded == nullptr) {
    const auto begin = std::chrono::steady_clock::now();
    upload.send();
    inputs.replace_unread_ids(unread_ids);
    cache_.set_rows(std::move(inputs.paged), inputs.states);
    run(inputs.batch, inputs.drawing_R, inputs.draw, unread_ids, inputs.scored, inputs.drawing);
    cache_.keep_states();
    costs_.add_launches(seconds_since(begin));
  }
  scheduler_.finish_step();
  if (!inputs.draw) return false;
  const TokenDraw& draw = recorded == nullptr ? *inputs.draw : *recorded->draw;
  unread_.push_back({.rows = {inputs.drawing.begin(), inputs.drawing.end()},
                     .tokens = UnreadTokens(draw.picked())});
  if (unread_.size() == 1) announce(unread_.front());
  return true;
}

void Engine::run(const nn::TokenBatch& batch, const at::Tensor& drawing_R,
                 std::optional<TokenDraw>& draw, const at::Tensor& unread_ids,
                 std::span<const ScoredToken> scored,
                 const std::vector<std::shared_ptr<Row>>& drawing) {
  at::Tensor hidden_RD = model_.hidden_states(batch, {.cache = &cache_});
  // This rank takes part in the use of the head even if it draws nothing: other ranks may draw.
  const nn::UnitUse use = model_.use_head();
  score(hidden_RD, scored);
  if (!draw) return;
  send_allowed(drawing, *draw);  // a device computes the hidden states meanwhile
  if (drawing_R.defined()) hidden_RD = hidden_RD.index_select(0, drawing_R);
  draw->pick(hidden_RD, unread_ids);
}

void Engine::send_allowed(const std::vector<std::shared_ptr<Row>>& drawing, TokenDraw& draw) {
  std::vector<RowGrammar*> grammars;
  for (const std::shared_ptr<Row>& row : drawing)
    if (row->grammar) grammars.push_back(&*row->grammar);
  if (grammars.empty()) return;
  find_allowed(grammars);
  draw.send_allowed();
}

// A row has at most one unread token at a time, so a drawn token is announced only when the row's
// previous token has been read.
void Engine::announce(const Drawn& drawn) {
  for (size_t place = 0; place < drawn.rows.size(); ++place) {
    const std::shared_ptr<Row> row = drawn.rows[place].lock();
    if (row == nullptr) continue;
    scheduler_.draw(row->request.number);
    row->unread_place = static_cast<int64_t>(place);
  }
}

Engine::Inputs Engine::list_inputs(const std::vector<scheduler::PlannedRow>& plan,
                                   int64_t planned_keys, device::Upload& upload) {
  std::vector<int64_t> ids;
  std::vector<int64_t> positions;
  std::vector<int64_t> starts{0};
  std::vector<int64_t> last;
  UnreadIds unread;
  std::vector<std::shared_ptr<Row>> drawing;
  std::vector<DrawPoint> points;
  std::vector<ScoredToken> scored;
  std::vector<std::vector<kernels::PagedRow>> rows(groups_.size());
  std::vector<nn::StateSlot> states;
  const auto slot_of_prefix =
      [this](const std::optional<int64_t>& place) -> std::optional<int64_t> {
    if (!place) return {};
    return config_.max_rows + *place;
  };
  for (const scheduler::PlannedRow& planned : plan) {
    const std::shared_ptr<Row>& row = rows_.at(planned.number);
    const std::vector<int32_t>& tokens = scheduler_.tokens(planned.number);
    for (int64_t position = planned.begin; position < planned.end; ++position) {
      const int64_t next = position + 1;
      if (row->request.wants_prompt_logprobs && next < row->prompt_tokens)
        scored.push_back({row, next, tokens[static_cast<size_t>(next)], std::ssize(ids)});
      const bool is_unread = row->unread_place >= 0 && position + 1 == std::ssize(tokens);
      if (is_unread) {
        unread.tokens.push_back(std::ssize(ids));
        unread.places.push_back(row->unread_place);
      }
      ids.push_back(is_unread ? 0 : tokens[static_cast<size_t>(position)]);
      positions.push_back(row->first_position + position);
    }
    starts.push_back(std::ssize(ids));
    states.push_back({.slot = planned.slot,
                      .begins = planned.begin == 0,
                      .begins_as = slot_of_prefix(planned.takes_state),
                      .kept_in = slot_of_prefix(planned.keeps_state)});
    if (planned.draws) {
      last.push_back(starts.back() - 1);
      drawing.push_back(row);
      points.push_back(draw_point(*row));
    }
    const std::vector<scheduler::BlockTable>& tables = scheduler_.tables(planned.number);
    for (size_t group = 0; group < groups_.size(); ++group)
      rows[group].push_back({.num_queries = planned.end - planned.begin,
                             .num_keys = planned.end,
                             .blocks = tables[group]});
  }
  std::vector<kernels::PagedRows> paged;
  for (std::vector<kernels::PagedRow>& of_group : rows)
    paged.emplace_back(std::move(of_group), kBlockTokens, upload, planned_keys);
  Inputs inputs{.batch = nn::TokenBatch(ids, positions, std::move(starts), upload),
                .paged = std::move(paged),
                .states = std::move(states),
                .unread = std::move(unread),
                .unread_tokens_U = {},
                .unread_places_U = {},
                .drawing_R = {},
                .drawing = std::move(drawing),
                .draw = {},
                .scored = std::move(scored)};
  if (last.size() < ids.size()) inputs.drawing_R = upload.add(last);
  if (!points.empty()) inputs.draw.emplace(model_, pickable_ids_, points, upload);
  inputs.unread_tokens_U = upload.add(inputs.unread.tokens);
  inputs.unread_places_U = upload.add(inputs.unread.places);
  return inputs;
}

DrawPoint Engine::draw_point(Row& row) const {
  const std::span<const int32_t> tokens = scheduler_.tokens(row.request.number);
  const size_t unread = row.unread_place < 0 ? 0 : 1;
  return {.sampling = row.request.sampling,
          .source = row.request.draw,
          .position = static_cast<int64_t>(row.answer.tokens().size() + unread),
          .seen_ids = tokens.first(tokens.size() - unread),
          .answer_begin = static_cast<size_t>(row.prompt_tokens),
          .biases = row.request.logit_bias,
          .allowed = row.grammar ? row.grammar->words() : std::span<const uint32_t>(),
          .unread_id = row.unread_place,
          .wants_logprob = row.request.wants_logprobs,
          .logprob_at_temperature = row.request.logprobs_at_temperature,
          .num_likeliest = std::min(row.request.num_likeliest, pickable_ids_)};
}

void Engine::read_down_to(size_t unread) {
  while (unread_.size() > unread) {
    std::vector<kernels::SampledToken> tokens = unread_.front().tokens.read();
    const Drawn drawn = std::move(unread_.front());
    unread_.pop_front();
    for (size_t place = 0; place < drawn.rows.size(); ++place)
      if (const std::shared_ptr<Row> row = drawn.rows[place].lock())
        take(*row, std::move(tokens[place]));
    if (!unread_.empty()) announce(unread_.front());
  }
}

void Engine::take(Row& row, kernels::SampledToken token) {
  const int64_t number = row.request.number;
  row.unread_place = -1;
  std::optional<FinishReason> reason = FinishReason::NotFinite;
  if (token.id != kernels::kNoToken && row.request.max_new_tokens == 0) {
    reason = FinishReason::Length;
  } else if (token.id != kernels::kNoToken) {
    const auto id = static_cast<int32_t>(token.id);
    if (row.request.wants_logprobs) row.logprobs.push_back(token.logprob);
    if (row.request.num_likeliest > 0) row.likeliest.push_back(std::move(token.likeliest));
    scheduler_.append(number, id);
    reason = row.answer.take(id);
    if (row.grammar) row.grammar->take(id);
  }
  if (row.grammar && !row.grammar->problem().empty()) reason = FinishReason::GrammarLimit;
  if (!reason) return;
  ended_.push_back(complete(row, *reason));
  remove(number);
}

Completion Engine::complete(const Row& row, FinishReason reason) const {
  return {.number = row.request.number,
          .prompt_tokens = row.prompt_tokens,
          .cached_tokens = scheduler_.cached_tokens(row.request.number).value_or(0),
          .text = row.answer.text(),
          .token_ids = row.answer.tokens(),
          .text_tokens = row.answer.num_text_tokens(),
          .logprobs = row.logprobs,
          .likeliest = row.likeliest,
          .prompt_logprobs = row.prompt_logprobs,
          .finish_reason = reason,
          .stop_string = row.answer.stop_string()};
}

std::vector<Completion> answer_all(Engine& engine, std::vector<Request> requests,
                                   const OnCompletion& on_completion) {
  std::vector<Completion> completions(requests.size());
  for (size_t index = 0; index < requests.size(); ++index) {
    requests[index].number = static_cast<int64_t>(index);
    engine.submit(std::move(requests[index]));
  }
  while (engine.unfinished() > 0) {
    for (Completion& completion : engine.step()) {
      if (on_completion) on_completion(completion);
      completions[static_cast<size_t>(completion.number)] = std::move(completion);
    }
  }
  return completions;
}

}  // namespace convoy::generate
