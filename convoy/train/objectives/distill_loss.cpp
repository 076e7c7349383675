// SPDX-License-Identifier: Apache-2.0
//
// Generalized Jensen-Shannon divergence as in arXiv 2306.13649, of which forward and reverse KL are
// the ends: q is the teacher's distribution, p the model's, m = beta q + (1 - beta) p. NOTES.md
// says where TRL 1.16 differs.
#include "convoy/train/objectives/distill_loss.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::objectives {
namespace {

using at::Tensor;

// Terms of a divergence by outcome. An outcome is a token, or all tokens beyond top_k.
struct Terms {
  Tensor divergence_CB;
  Tensor slope_CB;  // p d(divergence)/dp, up to a constant times p, which softmax takes away
};

Terms terms_of(const settings::DistillSettings& settings, const Tensor& log_p_CB,
               const Tensor& log_q_CB) {
  if (settings.divergence == settings::kForwardKl) {
    const Tensor q_CB = log_q_CB.exp();
    return {.divergence_CB = q_CB * (log_q_CB - log_p_CB), .slope_CB = -q_CB};
  }
  const Tensor p_CB = log_p_CB.exp();
  if (settings.divergence == settings::kReverseKl) {
    const Tensor term_CB = p_CB * (log_p_CB - log_q_CB);
    return {.divergence_CB = term_CB, .slope_CB = term_CB};
  }
  const double of_q = settings.beta;
  const double of_p = 1 - settings.beta;
  const Tensor log_m_CB = at::logaddexp(log_q_CB + std::log(of_q), log_p_CB + std::log(of_p));
  const Tensor of_model_CB = of_p * (p_CB * (log_p_CB - log_m_CB));
  return {.divergence_CB = of_q * (log_q_CB.exp() * (log_q_CB - log_m_CB)) + of_model_CB,
          .slope_CB = of_model_CB};
}

// The logarithm of what a distribution has beyond the tokens `top_CK`. It is summed over those
// tokens: 1 less the sum of the others would be rounding where they have almost all.
Tensor log_of_others(const Tensor& log_CV, const Tensor& top_CK) {
  return log_CV.scatter(1, top_CK, -std::numeric_limits<double>::infinity()).logsumexp({1}, true);
}

// Gradients in log-softmax's argument: a slope s becomes s - p sum(s).
Tensor through_softmax(const Tensor& slope_CV, const Tensor& p_CV, const Tensor& sum_C1) {
  return slope_CV - p_CV * sum_C1;
}

struct Found {
  Tensor divergence_C;
  Tensor gradient_CV;  // in the logits divided by the temperature
};

Found over_vocabulary(const settings::DistillSettings& settings, const Tensor& log_p_CV,
                      const Tensor& log_q_CV, bool wants_gradient) {
  const Terms terms = terms_of(settings, log_p_CV, log_q_CV);
  Found found{.divergence_C = terms.divergence_CB.sum(1), .gradient_CV = {}};
  if (wants_gradient)
    found.gradient_CV =
        through_softmax(terms.slope_CB, log_p_CV.exp(), terms.slope_CB.sum({1}, true));
  return found;
}

Found over_top(const settings::DistillSettings& settings, const Tensor& log_p_CV,
               const TopTokens& teacher, bool wants_gradient) {
  const Tensor& top_CK = teacher.ids_CK;
  const int64_t top_k = top_CK.size(1);
  const Tensor other_p_C1 = log_of_others(log_p_CV, top_CK);
  const Tensor log_p_CB = at::cat({log_p_CV.gather(1, top_CK), other_p_C1}, 1);
  const Terms terms = terms_of(settings, log_p_CB, teacher.logprobs_CB);
  Found found{.divergence_C = terms.divergence_CB.sum(1), .gradient_CV = {}};
  if (!wants_gradient) return found;
  // The others share their outcome's slope as they share its probability.
  const Tensor of_others_CV = (log_p_CV - other_p_C1).exp() * terms.slope_CB.narrow(1, top_k, 1);
  const Tensor slope_CV = of_others_CV.scatter(1, top_CK, terms.slope_CB.narrow(1, 0, top_k));
  found.gradient_CV = through_softmax(slope_CV, log_p_CV.exp(), terms.slope_CB.sum({1}, true));
  return found;
}

TopTokens top_of(const Tensor& log_q_CV, int64_t top_k) {
  const Tensor top_CK = std::get<1>(log_q_CV.topk(top_k, 1));
  return {.ids_CK = top_CK,
          .logprobs_CB = at::cat({log_q_CV.gather(1, top_CK), log_of_others(log_q_CV, top_CK)}, 1)};
}

// `found`: in the logits divided by the temperature.
Divergences outcome(const settings::DistillSettings& settings, const Tensor& log_p_CV,
                    const Found& found) {
  return {.divergence_C = found.divergence_C,
          .entropy_C = -(log_p_CV.exp() * log_p_CV).sum(1),
          .gradient_CV =
              found.gradient_CV.defined() ? found.gradient_CV / settings.temperature : Tensor()};
}

}  // namespace

Divergences divergences(const settings::DistillSettings& settings, const Tensor& model_CV,
                        const Tensor& teacher_CV, bool wants_gradient) {
  CONVOY_INVARIANT(model_CV.sizes() == teacher_CV.sizes() && model_CV.dim() == 2,
                   "logits of {} and {} tokens", model_CV.size(-1), teacher_CV.size(-1));
  const at::NoGradGuard no_grad;
  const Tensor log_p_CV = (model_CV / settings.temperature).log_softmax(1);
  const Tensor log_q_CV = (teacher_CV / settings.temperature).log_softmax(1);
  const bool is_whole = settings.top_k == 0 || settings.top_k >= model_CV.size(1);
  return outcome(
      settings, log_p_CV,
      is_whole ? over_vocabulary(settings, log_p_CV, log_q_CV, wants_gradient)
               : over_top(settings, log_p_CV, top_of(log_q_CV, settings.top_k), wants_gradient));
}

Divergences divergences_of_top(const settings::DistillSettings& settings, const Tensor& model_CV,
                               const TopTokens& teacher, bool wants_gradient) {
  CONVOY_INVARIANT(settings.temperature == 1 && teacher.ids_CK.size(1) < model_CV.size(1),
                   "a teacher's {} tokens at temperature {}", teacher.ids_CK.size(1),
                   settings.temperature);
  const at::NoGradGuard no_grad;
  const Tensor log_p_CV = model_CV.log_softmax(1);
  return outcome(settings, log_p_CV, over_top(settings, log_p_CV, teacher, wants_gradient));
}

}  // namespace convoy::objectives
