// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/distill_objective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/exchange.h"

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

DistillObjective::DistillObjective(nn::CausalLm& model, nn::CausalLm* teacher,
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

DistillObjective::Teaching DistillObjective::teaching_of(const LabelledBatch& batch,
                                                         const std::vector<Rollout>& texts) const {
  if (teacher_ == nullptr) return {.top_N = top_tokens_of(texts)};
  const at::NoGradGuard no_grad;
  return {.hidden_NE =
              teacher_->hidden_states(batch.tokens, {}).index_select(0, batch.labels.tokens_N())};
}

objectives::TopTokens DistillObjective::top_tokens_of(const std::vector<Rollout>& texts) const {
  const int64_t top_k = options_.distill.top_k;
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
  for (const Rollout& text : texts) {
    CONVOY_INVARIANT(std::ssize(text.teacher.ids) == text.text_tokens() * top_k,
                     "{} tokens of a teacher at {} tokens", text.teacher.ids.size(),
                     text.text_tokens());
    ids.insert(ids.end(), text.teacher.ids.begin(), text.teacher.ids.end());
    logprobs.insert(logprobs.end(), text.teacher.logprobs.begin(), text.teacher.logprobs.end());
  }
  return {
      .ids_CK = at::tensor(ids, at::kLong).view({-1, top_k}).to(model().device()),
      .logprobs_CB = at::tensor(logprobs, at::kFloat).view({-1, top_k + 1}).to(model().device())};
}

objectives::Divergences DistillObjective::chunk_of(const Teaching& teaching, int64_t first,
                                                   const at::Tensor& logits_CV,
                                                   bool wants_gradient) const {
  const int64_t count = logits_CV.size(0);
  if (teacher_ == nullptr)
    return objectives::divergences_of_top(
        options_.distill, logits_CV.to(at::kFloat),
        {.ids_CK = teaching.top_N.ids_CK.narrow(0, first, count),
         .logprobs_CB = teaching.top_N.logprobs_CB.narrow(0, first, count)},
        wants_gradient);
  const int64_t shared = std::min(logits_CV.size(1), teacher_->vocab_size());
  objectives::Divergences chunk = objectives::divergences(
      options_.distill, of_shared_tokens(logits_CV, shared),
      of_shared_tokens(nn::head_logits(*teacher_, teaching.hidden_NE.narrow(0, first, count)),
                       shared),
      wants_gradient);
  if (wants_gradient && shared < logits_CV.size(1))
    chunk.gradient_CV = at::constant_pad_nd(chunk.gradient_CV, {0, logits_CV.size(1) - shared});
  return chunk;
}

DistillObjective::TokenDivergences DistillObjective::divergences_of(
    const LabelledBatch& batch, const Teaching& teaching, const at::Tensor& hidden_TD) const {
  const auto options = hidden_TD.options().dtype(at::kFloat).requires_grad(false);
  TokenDivergences found{.sum = {},
                         .divergence_N = at::zeros({batch.supervised_tokens()}, options),
                         .entropy_N = at::zeros({batch.supervised_tokens()}, options)};
  found.sum = nn::head_logit_loss(
      model(), hidden_TD, batch.labels.tokens_N(),
      [&](int64_t first, const at::Tensor& logits_CV, bool wants_gradient) {
        const objectives::Divergences chunk = chunk_of(teaching, first, logits_CV, wants_gradient);
        found.divergence_N.narrow(0, first, logits_CV.size(0)).copy_(chunk.divergence_C);
        found.entropy_N.narrow(0, first, logits_CV.size(0)).copy_(chunk.entropy_C);
        return kernels::LogitLoss{.sum = chunk.divergence_C.sum(at::kDouble),
                                  .gradient_CV = chunk.gradient_CV};
      });
  return found;
}

// A teacher's pass comes first: its activations are gone when the model's are made.
MicroBatchLoss DistillObjective::loss(const PassOptions& options) {
  const LabelledBatch batch =
      micro_batch().place.has_rows ? micro_batch().batch : idle_batch(model().device());
  const Teaching teaching = teaching_of(batch, batch_rollouts());
  const PassOptions exact = without_noise(options);
  const at::Tensor hidden_TD = model().hidden_states(
      batch.tokens, {.recompute = exact.recompute,
                     .kept_inputs = exact.keeps_inputs_on_host ? nn::KeptInputs::OnHost
                                                               : nn::KeptInputs::OnDevice,
                     .draw_key = exact.draw_key,
                     .noise_alpha = exact.noise_alpha});
  const TokenDivergences found = divergences_of(batch, teaching, hidden_TD);
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
    const std::vector<Rollout> together(texts.begin() + first, texts.begin() + end);
    std::vector<data::EncodedRow> rows;
    for (const Rollout& text : together) rows.push_back(row_of(text));
    std::vector<int64_t> all(rows.size());
    std::iota(all.begin(), all.end(), int64_t{0});
    const LabelledBatch batch =
        rows.empty() ? idle_batch(model().device())
                     : assemble_batch(data::TokenDataset::from_rows(rows), all, model().device());
    const Teaching teaching = teaching_of(batch, together);
    const at::Tensor divergence_N =
        divergences_of(batch, teaching, model().hidden_states(batch.tokens, {}))
            .divergence_N.to(at::kCPU);
    int64_t start = 0;
    for (const Rollout& text : together) {
      losses.push_back(
          divergence_N.narrow(0, start, text.text_tokens()).sum(at::kDouble).item<double>());
      start += text.text_tokens();
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
