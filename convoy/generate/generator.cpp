// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/generator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/device/transfer.h"

namespace convoy::generate {
namespace {

// Prompts read together: bounds the activations of a prefill.
constexpr int64_t kPrefillTokens = 8192;

void check(const GenerationConfig& config) {
  const auto demand = [](bool holds, const char* key, const char* wanted) {
    if (!holds) throw ConfigError(fmt::format("{} must be {}", key, wanted), {.key = key});
  };
  demand(config.max_new_tokens >= 1, "generation.max_new_tokens", "at least 1");
  demand(config.samples_per_prompt >= 1, "generation.n", "at least 1");
  demand(config.batch_size >= 1, "generation.batch_size", "at least 1");
  demand(config.sampling.temperature >= 0, "generation.temperature", "0 or above");
  demand(config.sampling.top_k >= 0, "generation.top_k", "0 or above");
  demand(config.sampling.top_p > 0 && config.sampling.top_p <= 1, "generation.top_p",
         "above 0 and at most 1");
  for (const std::string& stop : config.stop) {
    demand(!stop.empty(), "generation.stop", "a list of strings that are not empty");
  }
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  return reason == FinishReason::Stop ? "stop" : "length";
}

struct Generator::Row {
  int64_t index = 0;  // the prompt's number
  int64_t sample = 0;
  int64_t slot = 0;
  int64_t prompt_tokens = 0;
  std::vector<int32_t> pending;  // tokens the model has not seen: the prompt, then the last one
  std::vector<int32_t> generated;
  bool ended = false;
  FinishReason reason = FinishReason::Length;
  bool ends_in_end_token = false;
  std::optional<size_t> stop_at;  // byte where a stop string begins in the decoded text
};

Generator::Generator(nn::CausalLm& model, const text::Tokenizer& tokenizer, GenerationConfig config)
    : model_(model),
      tokenizer_(tokenizer),
      config_(std::move(config)),
      pickable_ids_(std::min(model.vocab_size(), tokenizer.vocab_size())) {
  check(config_);
  if (const auto eos = tokenizer.eos_id()) config_.end_ids.push_back(*eos);
}

std::vector<Generator::Row> Generator::admit(const std::vector<std::vector<int32_t>>& prompts,
                                             int64_t& next, int64_t free_rows,
                                             nn::KvCache& cache) const {
  std::vector<Row> admitted;
  int64_t tokens = 0;
  const int64_t total = static_cast<int64_t>(prompts.size()) * config_.samples_per_prompt;
  for (; next < total && free_rows > 0; ++next, --free_rows) {
    Row row;
    const int64_t prompt = next / config_.samples_per_prompt;
    row.index = number_of(prompt);
    row.sample = next % config_.samples_per_prompt;
    row.pending = prompts[static_cast<size_t>(prompt)];
    row.prompt_tokens = static_cast<int64_t>(row.pending.size());
    if (!admitted.empty() && tokens + row.prompt_tokens > kPrefillTokens) break;
    tokens += row.prompt_tokens;
    row.slot = cache.add_row();
    admitted.push_back(std::move(row));
  }
  return admitted;
}

// One forward pass over the pending tokens of `rows`, and one new token for each.
void Generator::advance(std::vector<Row*> rows, nn::KvCache& cache) const {
  std::vector<int64_t> ids;
  std::vector<int64_t> positions;
  std::vector<int64_t> starts{0};
  std::vector<int64_t> last;
  std::vector<int64_t> slots;
  for (const Row* row : rows) {
    int64_t position = cache.length(row->slot);
    for (const int32_t id : row->pending) {
      ids.push_back(id);
      positions.push_back(position++);
    }
    starts.push_back(static_cast<int64_t>(ids.size()));
    last.push_back(starts.back() - 1);
    slots.push_back(row->slot);
  }
  cache.set_slots(std::move(slots));
  const nn::TokenBatch batch(ids, positions, std::move(starts), model_.device());
  at::Tensor hidden_TD = model_.hidden_states(batch, {.cache = &cache});
  if (ids.size() != rows.size()) {
    hidden_TD = hidden_TD.index_select(0, device::to_device<int64_t>(last, model_.device()));
  }
  std::vector<DrawPoint> points;
  for (const Row* row : rows) {
    points.push_back({.row = row->index,
                      .sample = row->sample,
                      .position = static_cast<int64_t>(row->generated.size())});
  }
  const std::vector<int32_t> tokens =
      sample_tokens(model_.head().forward(hidden_TD), pickable_ids_, config_.sampling, points);
  for (size_t r = 0; r < rows.size(); ++r) take(*rows[r], tokens[r]);
}

void Generator::take(Row& row, int32_t token) const {
  row.generated.push_back(token);
  row.pending.assign(1, token);
  if (std::find(config_.end_ids.begin(), config_.end_ids.end(), token) != config_.end_ids.end()) {
    row.ended = row.ends_in_end_token = true;
    row.reason = FinishReason::Stop;
    return;
  }
  const auto count = static_cast<int64_t>(row.generated.size());
  row.ended =
      count >= config_.max_new_tokens || row.prompt_tokens + count >= model_.max_positions();
  if (config_.stop.empty()) return;
  // Only the end of the text can hold a new stop string: each token that shows gives a byte or more.
  size_t longest = 0;
  for (const std::string& stop : config_.stop) longest = std::max(longest, stop.size());
  const size_t tail = std::min(row.generated.size(), longest + 8);
  const std::string end = tokenizer_.decode(
      {row.generated.end() - static_cast<ptrdiff_t>(tail), row.generated.end()}, true);
  const bool may_hold =
      std::any_of(config_.stop.begin(), config_.stop.end(),
                  [&](const auto& stop) { return end.find(stop) != std::string::npos; });
  if (!may_hold) return;
  const std::string text = tokenizer_.decode(row.generated, true);
  size_t first = std::string::npos;
  for (const std::string& stop : config_.stop) first = std::min(first, text.find(stop));
  if (first == std::string::npos) return;
  row.stop_at = first;
  row.ended = true;
  row.reason = FinishReason::Stop;
}

Completion Generator::complete(const Row& row) const {
  std::vector<int32_t> shown = row.generated;
  if (row.ends_in_end_token) shown.pop_back();  // an end token need not be a special one
  std::string text = tokenizer_.decode(shown, true);
  if (row.stop_at) text.resize(*row.stop_at);
  return {.index = row.index,
          .sample = row.sample,
          .prompt_tokens = row.prompt_tokens,
          .text = std::move(text),
          .token_ids = row.generated,
          .finish_reason = row.reason};
}

std::vector<Completion> Generator::run(const std::vector<std::vector<int32_t>>& prompts,
                                       const Progress& progress) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto tokens = static_cast<int64_t>(prompts[i].size());
    const int64_t number = number_of(static_cast<int64_t>(i));
    CONVOY_CHECK(tokens > 0, DataError, "prompt {} has no tokens", number);
    CONVOY_CHECK(tokens < model_.max_positions(), DataError,
                 "prompt {} has {} tokens, the model reads at most {} with the answer", number,
                 tokens, model_.max_positions());
  }
  nn::KvCache cache = model_.make_cache();
  std::vector<Row> active;
  std::vector<Completion> completions;
  int64_t next = 0;
  const auto step = [&](std::vector<Row>& rows) {
    std::vector<Row*> pointers;
    for (Row& row : rows) pointers.push_back(&row);
    advance(std::move(pointers), cache);
    for (const Row& row : rows) {
      if (!row.ended) continue;
      cache.remove_row(row.slot);
      completions.push_back(complete(row));
      if (progress) progress(completions.back());
    }
    std::erase_if(rows, [](const Row& row) { return row.ended; });
  };
  do {
    const int64_t free_rows = config_.batch_size - static_cast<int64_t>(active.size());
    std::vector<Row> admitted = admit(prompts, next, free_rows, cache);
    if (!active.empty()) step(active);
    if (!admitted.empty()) step(admitted);
    std::move(admitted.begin(), admitted.end(), std::back_inserter(active));
  } while (!active.empty() ||
           next < static_cast<int64_t>(prompts.size()) * config_.samples_per_prompt);
  std::sort(completions.begin(), completions.end(), [](const Completion& a, const Completion& b) {
    return std::pair(a.index, a.sample) < std::pair(b.index, b.sample);
  });
  return completions;
}

}  // namespace convoy::generate
