// SPDX-License-Identifier: Apache-2.0
//
// Text from prompts: rows of any length together, without padding; a row leaves when it ends and the next prompt takes
// its place. One thread. Blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/generate/sampler.h"
#include "convoy/nn/causal_lm.h"
#include "convoy/nn/kv_cache.h"
#include "convoy/text/tokenizer.h"

namespace convoy::generate {

struct GenerationConfig {
  SamplerConfig sampling;
  int64_t max_new_tokens = 200;
  int64_t samples_per_prompt = 1;
  int64_t batch_size = 16;        // rows in flight
  std::vector<int32_t> end_ids;   // beside the tokenizer's eos: models::end_token_ids
  std::vector<std::string> stop;  // strings that end a text and are not part of it
  // Prompt i of run() is number `first_index` + i * `index_step`: that of a rank that answers every
  // n-th. Draws depend on it alone.
  int64_t first_index = 0;
  int64_t index_step = 1;
};

enum class FinishReason { Stop, Length };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length"

struct Completion {
  int64_t index = 0;  // the prompt's number
  int64_t sample = 0;
  int64_t prompt_tokens = 0;
  std::string text;                // without end token, stop string and special tokens
  std::vector<int32_t> token_ids;  // all that were generated, the end token included
  FinishReason finish_reason = FinishReason::Length;
};

class Generator {
 public:
  // Both must outlive the generator. Throws ConfigError on a config out of range.
  Generator(nn::CausalLm& model, const text::Tokenizer& tokenizer, GenerationConfig config);

  // Called with each completion when it ends, in that order.
  using Progress = std::function<void(const Completion&)>;
  // Completions by (prompt, sample). A prompt that leaves no room before the model's last position throws DataError; a
  // text that reaches it ends with reason Length.
  std::vector<Completion> run(const std::vector<std::vector<int32_t>>& prompts,
                              const Progress& progress = {});

 private:
  struct Row;
  std::vector<Row> admit(const std::vector<std::vector<int32_t>>& prompts, int64_t& next,
                         int64_t free_rows, nn::KvCache& cache) const;
  void advance(std::vector<Row*> rows, nn::KvCache& cache) const;
  void take(Row& row, int32_t token) const;
  Completion complete(const Row& row) const;
  int64_t number_of(int64_t prompt) const {
    return config_.first_index + prompt * config_.index_step;
  }

  nn::CausalLm& model_;
  const text::Tokenizer& tokenizer_;
  GenerationConfig config_;
  int64_t pickable_ids_;  // padded rows of the vocabulary are never picked
};

}  // namespace convoy::generate
