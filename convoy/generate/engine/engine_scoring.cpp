// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities of prompts.
#include <limits>

#include "convoy/generate/engine/engine_step.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/nn/head_loss.h"

namespace convoy::generate {

// A token is picked as if it were the likeliest one, because the sampler gives the log-probability
// of a token that it picks, before additions to logits.
void Engine::score(const at::Tensor& hidden_TD, std::span<const ScoredToken> scored) {
  constexpr size_t kMostTogether = 64;  // bounds the logits in memory
  constexpr float kAlwaysLikeliest = 1e30F;
  for (; !scored.empty(); scored = scored.subspan(std::min(kMostTogether, scored.size()))) {
    const std::span<const ScoredToken> some = scored.first(std::min(kMostTogether, scored.size()));
    std::vector<int64_t> places;
    std::vector<kernels::LogitBias> biases;
    for (const ScoredToken& token : some) {
      places.push_back(token.place);
      biases.push_back({.id = token.id, .bias = kAlwaysLikeliest});
    }
    std::vector<kernels::SamplingRow> rows;
    for (size_t index = 0; index < some.size(); ++index)
      rows.push_back({.rule = {.temperature = 0},
                      .biases = std::span(biases).subspan(index, 1),
                      .wants_logprob = true,
                      .num_likeliest =
                          std::min(some[index].row->request.num_prompt_likeliest, pickable_ids_)});
    const at::Tensor places_R =
        device::to_device(std::span<const int64_t>(places), hidden_TD.device());
    std::vector<kernels::SampledToken> tokens = kernels::sample_tokens(
        nn::head_logits(model_, hidden_TD.index_select(0, places_R)), pickable_ids_, rows);
    for (size_t index = 0; index < some.size(); ++index)
      note(some[index], std::move(tokens[index]));
  }
}

void Engine::note(const ScoredToken& scored, kernels::SampledToken token) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  Row& row = *scored.row;
  PromptLogprobs& known = row.prompt_logprobs;
  known.logprobs.resize(static_cast<size_t>(row.prompt_tokens), kNone);
  const auto position = static_cast<size_t>(scored.position);
  known.logprobs[position] = token.id == kernels::kNoToken ? kNone : token.logprob;
  if (row.request.num_prompt_likeliest == 0) return;
  known.likeliest.resize(known.logprobs.size());
  known.likeliest[position] = std::move(token.likeliest);
}

}  // namespace convoy::generate
