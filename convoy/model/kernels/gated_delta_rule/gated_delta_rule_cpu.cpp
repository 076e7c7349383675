// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_delta_rule/delta_rule_heads.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor forward_from_zeros(const DeltaRuleTensors& inputs, const RowIndex& rows) {
  return delta_rule::run_forward(inputs, rows, at::Tensor(), {});
}

}  // namespace

const GatedDeltaRuleOps kGatedDeltaRuleCpu = {forward_from_zeros, delta_rule::run_backward,
                                              delta_rule::run_forward};

}  // namespace convoy::kernels
