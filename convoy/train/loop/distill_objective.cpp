// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/distill_objective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/objectives/distill_loss.h"

namespace convoy::train {
namespace {

// Sums over the tokens of a step, then their number.
enum DistillFigure { EntropySum, NumTokens, NumDistillFigures };

// Logits of tokens that only one model has rows for are left out of both distributions: they pad
// the head.
at::Tensor of_shared_tokens(const at::Tensor& logits_CV, int64_t shared) {
  return logits_CV.narrow(1, 0, shared).to(at::kFloat);
}

}  // namespace

DistillObjective::DistillObjective(nn::CausalLm& model, nn::CausalLm& teacher,
                                   const data::BatchPlan& plan, RolloutSource& source,
                                   DistillOptions options, settings::RolloutSettings rollout,
                                   comm::Group& group)
    : RolloutObjective(model, plan, source, std::move(rollout), /*steps_of_turn=*/1, group),
      teacher_(teacher),
      options_(std::move(options)) {}

DistillObjective::Learnt DistillObjective::choose(const std::vector<RolloutSummary>& all,
                                                  std::vector<Rollout>& /*own*/,
                                                  const std::vector<int64_t>& /*slots*/) {
  Learnt learnt{.slots = std::vector<int64_t>(all.size())};
  std::iota(learnt.slots.begin(), learnt.slots.end(), int64_t{0});
  for (const RolloutSummary& rollout : all)
    learnt.weight += static_cast<double>(rollout.text_tokens);
  return learnt;
}

at::Tensor DistillObjective::teacher_states(const LabelledBatch& batch) const {
  const at::NoGradGuard no_grad;
  return teacher_.hidden_states(batch.tokens, {}).index_select(0, batch.labels.tokens_N());
}

DistillObjective::TokenDivergences DistillObjective::divergences_of(
    const LabelledBatch& batch, const at::Tensor& teacher_NE, const at::Tensor& hidden_TD) const {
  const auto options = hidden_TD.options().dtype(at::kFloat).requires_grad(false);
  TokenDivergences found{.sum = {},
                         .divergence_N = at::zeros({batch.supervised_tokens()}, options),
                         .entropy_N = at::zeros({batch.supervised_tokens()}, options)};
  const int64_t shared = std::min(model().vocab_size(), teacher_.vocab_size());
  found.sum = nn::head_logit_loss(
      model(), hidden_TD, batch.labels.tokens_N(),
      [&](int64_t first, const at::Tensor& logits_CV, bool wants_gradient) {
        const int64_t count = logits_CV.size(0);
        const objectives::Divergences chunk = objectives::divergences(
            options_.distill, of_shared_tokens(logits_CV, shared),
            of_shared_tokens(nn::head_logits(teacher_, teacher_NE.narrow(0, first, count)), shared),
            wants_gradient);
        found.divergence_N.narrow(0, first, count).copy_(chunk.divergence_C);
        found.entropy_N.narrow(0, first, count).copy_(chunk.entropy_C);
        kernels::LogitLoss loss{.sum = chunk.divergence_C.sum(at::kDouble),
                                .gradient_CV = chunk.gradient_CV};
        if (wants_gradient && shared < logits_CV.size(1))
          loss.gradient_CV =
              at::constant_pad_nd(chunk.gradient_CV, {0, logits_CV.size(1) - shared});
        return loss;
      });
  return found;
}

// The teacher's pass comes first: its activations are gone when the model's are made.
MicroBatchLoss DistillObjective::loss(const PassOptions& options) {
  const LabelledBatch batch =
      micro_batch().place.has_rows ? micro_batch().batch : idle_batch(model().device());
  const at::Tensor teacher_NE = teacher_states(batch);
  const PassOptions exact = without_noise(options);
  const at::Tensor hidden_TD = model().hidden_states(
      batch.tokens, {.recompute = exact.recompute,
                     .kept_inputs = exact.keeps_inputs_on_host ? nn::KeptInputs::OnHost
                                                               : nn::KeptInputs::OnDevice,
                     .draw_key = exact.draw_key,
                     .noise_alpha = exact.noise_alpha});
  const TokenDivergences found = divergences_of(batch, teacher_NE, hidden_TD);
  if (!micro_batch().place.has_rows) return {.sum = found.sum, .hits = {}, .figures = {}};
  const at::Tensor entropy = found.entropy_N.sum(at::kDouble);
  return {.sum = found.sum,
          .hits = {},
          .figures = at::stack({entropy, at::full_like(entropy, batch.supervised_tokens())})};
}

int64_t DistillObjective::num_figures() const { return NumDistillFigures; }

std::map<std::string, double> DistillObjective::step_figures(
    const std::vector<double>& sums) const {
  std::map<std::string, double> named = RolloutObjective::step_figures(sums);
  // In place of the estimate from the drawn tokens.
  if (sums[NumTokens] > 0) named["entropy"] = sums[EntropySum] / sums[NumTokens];
  return named;
}

std::vector<double> DistillObjective::losses_of(const std::vector<Rollout>& texts,
                                                comm::Group& group) const {
  const at::NoGradGuard no_grad;
  int64_t batches = (std::ssize(texts) + options_.eval_texts - 1) / options_.eval_texts;
  // Every rank takes part in every pass where the weights are gathered for it.
  if (const nn::Residency* const gathers = residency();
      gathers != nullptr && gathers->is_collective())
    for (const int64_t of_rank : comm::exchange_words(group, std::vector<int64_t>{batches}))
      batches = std::max(batches, of_rank);
  std::vector<double> losses;
  for (int64_t number = 0; number < batches; ++number) {
    const int64_t first = std::min(number * options_.eval_texts, std::ssize(texts));
    const int64_t end = std::min(first + options_.eval_texts, std::ssize(texts));
    std::vector<data::EncodedRow> rows;
    for (int64_t text = first; text < end; ++text)
      rows.push_back(row_of(texts[static_cast<size_t>(text)]));
    std::vector<int64_t> all(rows.size());
    std::iota(all.begin(), all.end(), int64_t{0});
    const LabelledBatch batch =
        rows.empty() ? idle_batch(model().device())
                     : assemble_batch(data::TokenDataset::from_rows(rows), all, model().device());
    const at::Tensor teacher_NE = teacher_states(batch);
    const at::Tensor divergence_N =
        divergences_of(batch, teacher_NE, model().hidden_states(batch.tokens, {}))
            .divergence_N.to(at::kCPU);
    int64_t start = 0;
    for (int64_t text = first; text < end; ++text) {
      const int64_t tokens = texts[static_cast<size_t>(text)].text_tokens();
      losses.push_back(divergence_N.narrow(0, start, tokens).sum(at::kDouble).item<double>());
      start += tokens;
    }
  }
  return losses;
}

std::optional<Evaluation> DistillObjective::evaluate(comm::Group& group,
                                                     const std::function<bool()>& stop_requested) {
  return source().evaluate(
      group, stop_requested,
      [this, &group](const std::vector<Rollout>& texts) { return losses_of(texts, group); });
}

}  // namespace convoy::train
