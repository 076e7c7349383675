// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/attention/attention_ops.h"
#include "convoy/model/kernels/attention/attention_tasks.h"

namespace convoy::kernels {
namespace {

using attention::Inputs;

Inputs packed_inputs(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                     const RowIndex& rows, const AttentionConfig& config) {
  Inputs inputs{.q_THE = q_THE, .rows = {}, .row_starts = rows.starts(), .config = config};
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    inputs.rows.push_back({k_TKE.narrow(0, rows.begin(row), rows.length(row)),
                           v_TKE.narrow(0, rows.begin(row), rows.length(row))});
  return inputs;
}

AttentionOutput forward(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                        const RowIndex& rows, const AttentionConfig& config) {
  attention::Output output =
      attention::run_forward(packed_inputs(q_THE, k_TKE, v_TKE, rows, config));
  return {output.out_THE, {output.log_sum_exp_HT}};
}

AttentionGradients backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                            const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const AttentionOutput& output, const RowIndex& rows,
                            const AttentionConfig& config) {
  return attention::run_backward(packed_inputs(q_THE, k_TKE, v_TKE, rows, config),
                                 {output.out_THE, output.for_backward[0]}, grad_THE);
}

}  // namespace

const AttentionOps kAttentionCpu = {forward, backward};

}  // namespace convoy::kernels
