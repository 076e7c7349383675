// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule_ops.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/row_index/row_slots.h"

namespace convoy::kernels {
namespace {

DeltaRuleTensors checked_inputs(const at::Tensor& q_TKE, const at::Tensor& k_TKE,
                                const at::Tensor& v_THF, const at::Tensor& log_decay_TH,
                                const at::Tensor& beta_TH, const RowIndex& rows) {
  const auto by_feature = [](const at::Tensor& x) {
    return x.stride(-1) == 1 ? x : x.contiguous();
  };
  CONVOY_INVARIANT(q_TKE.dim() == 3 && k_TKE.sizes() == q_TKE.sizes() && v_THF.dim() == 3 &&
                       v_THF.size(0) == q_TKE.size(0),
                   "gated_delta_rule needs [T, K, E] queries and keys and [T, H, F] values");
  CONVOY_INVARIANT(q_TKE.size(1) > 0 && v_THF.size(1) % q_TKE.size(1) == 0,
                   "gated_delta_rule needs value heads that are a multiple of key heads, found {} "
                   "and {}",
                   v_THF.size(1), q_TKE.size(1));
  CONVOY_INVARIANT(
      q_TKE.scalar_type() == k_TKE.scalar_type() && q_TKE.scalar_type() == v_THF.scalar_type(),
      "gated_delta_rule needs queries, keys and values of one dtype");
  for (const at::Tensor& of_token : {log_decay_TH, beta_TH})
    CONVOY_INVARIANT(of_token.scalar_type() == at::kFloat && of_token.dim() == 2 &&
                         of_token.sizes() == v_THF.sizes().slice(0, 2),
                     "gated_delta_rule needs fp32 decays and betas [T, H]");
  CONVOY_INVARIANT(rows.num_tokens() == q_TKE.size(0),
                   "gated_delta_rule needs rows of the {} tokens, found {}", q_TKE.size(0),
                   rows.num_tokens());
  return {by_feature(q_TKE), by_feature(k_TKE), by_feature(v_THF), log_decay_TH.contiguous(),
          beta_TH.contiguous()};
}

void check_states(const at::Tensor& states_SHEF, const DeltaRuleTensors& inputs) {
  const std::vector<int64_t> of_state{inputs.v_THF.size(1), inputs.k_TKE.size(2),
                                      inputs.v_THF.size(2)};
  CONVOY_INVARIANT(states_SHEF.scalar_type() == at::kFloat && states_SHEF.dim() == 4 &&
                       states_SHEF.sizes().slice(1) == of_state &&
                       (states_SHEF.size(0) == 0 || states_SHEF[0].is_contiguous()),
                   "gated_delta_rule needs contiguous fp32 states [H, E, F]");
}

}  // namespace

at::Tensor gated_delta_rule(const at::Tensor& q_TKE, const at::Tensor& k_TKE,
                            const at::Tensor& v_THF, const at::Tensor& log_decay_TH,
                            const at::Tensor& beta_TH, const RowIndex& rows) {
  const DeltaRuleTensors inputs = checked_inputs(q_TKE, k_TKE, v_THF, log_decay_TH, beta_TH, rows);
  const auto& [q, k, v, log_decay, beta] = inputs;
  const bool records = records_gradient({q, k, v, log_decay, beta});
  const at::NoGradGuard no_grad;
  const at::Tensor out_THF = gated_delta_rule_ops(q.device()).forward(inputs, rows);
  if (!records) return out_THF;
  return with_backward(
      out_THF, {.op = "gated_delta_rule",
                .inputs = {q, k, v, log_decay, beta},
                .saved = {q, k, v, log_decay, beta},
                .gradients = [rows](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                    const std::vector<bool>&) -> std::vector<at::Tensor> {
                  const DeltaRuleTensors gradients =
                      gated_delta_rule_ops(grad.device())
                          .backward(grad, {saved[0], saved[1], saved[2], saved[3], saved[4]}, rows);
                  return {gradients.q_TKE, gradients.k_TKE, gradients.v_THF, gradients.log_decay_TH,
                          gradients.beta_TH};
                }});
}

at::Tensor gated_delta_rule_with_state(const at::Tensor& q_TKE, const at::Tensor& k_TKE,
                                       const at::Tensor& v_THF, const at::Tensor& log_decay_TH,
                                       const at::Tensor& beta_TH, const RowIndex& rows,
                                       const at::Tensor& states_SHEF,
                                       const std::vector<int64_t>& slots) {
  const at::NoGradGuard no_grad;
  const DeltaRuleTensors inputs = checked_inputs(q_TKE, k_TKE, v_THF, log_decay_TH, beta_TH, rows);
  check_states(states_SHEF, inputs);
  return gated_delta_rule_ops(q_TKE.device())
      .advance(inputs, rows, states_SHEF,
               row_slots(slots, rows, states_SHEF.size(0), "gated_delta_rule"));
}

}  // namespace convoy::kernels
