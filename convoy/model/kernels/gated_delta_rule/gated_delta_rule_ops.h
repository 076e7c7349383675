// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for the gated delta rule. Queries, keys and values have
// contiguous features; decays and betas are contiguous. All lie on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"

namespace convoy::kernels {

// The inputs, or their gradients.
struct DeltaRuleTensors {
  at::Tensor q_TKE;
  at::Tensor k_TKE;
  at::Tensor v_THF;
  at::Tensor log_decay_TH;
  at::Tensor beta_TH;
};

struct GatedDeltaRuleOps {
  at::Tensor (*forward)(const DeltaRuleTensors& inputs, const RowIndex& rows);
  DeltaRuleTensors (*backward)(const at::Tensor& grad_THF, const DeltaRuleTensors& inputs,
                               const RowIndex& rows);
  // `slots` has one place in `states` for each row.
  at::Tensor (*advance)(const DeltaRuleTensors& inputs, const RowIndex& rows,
                        const at::Tensor& states_SHEF, const std::vector<int64_t>& slots);
};

const GatedDeltaRuleOps& gated_delta_rule_ops(at::Device device);  // chosen by op_table.cpp

extern const GatedDeltaRuleOps kGatedDeltaRuleCpu;
extern const GatedDeltaRuleOps kGatedDeltaRuleAten;  // any device

}  // namespace convoy::kernels
