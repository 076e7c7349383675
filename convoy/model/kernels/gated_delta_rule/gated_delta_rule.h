// SPDX-License-Identifier: Apache-2.0
//
// The gated delta rule (arXiv 2412.06464) over packed rows, the recurrence of Qwen3.5's and
// Qwen3-Next's linear attention. Rows lie one after another without padding and never see each
// other. Shapes: T tokens of all rows, H value heads, K query/key heads (K divides H: successive
// value heads share one), E features of a key, F features of a value, S states.
//
// Each row and value head has a state S [E, F] in fp32. For each token of the row, in order:
//   S <- exp(log_decay) S;  S <- S + k (beta (v - k^T S))^T;  output = S^T q
// where q and k are the inputs divided by their length, sqrt(sum of squares + 1e-6), and q also by
// sqrt(E). Both are done here, as transformers does with use_qk_l2norm_in_kernel=True.
//
// On CPUs the numbers of a row do not depend on its neighbours, on the number of threads, or on how
// the row is cut into passes, to the bit: token by token gives what the whole row gives at once.
// Other devices give the same up to rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// Returns [T, H, F] in the dtype of v. Differentiable in all five; saves only its inputs. q, k and
// v have one dtype (fp32 or bf16) and may be columns of one wider tensor; log_decay (at most 0) and
// beta are fp32. The state is zero before a row's first token.
at::Tensor gated_delta_rule(const at::Tensor& q_TKE, const at::Tensor& k_TKE,
                            const at::Tensor& v_THF, const at::Tensor& log_decay_TH,
                            const at::Tensor& beta_TH, const RowIndex& rows);

// The same for generation, without gradients. Row r begins with states[slots[r]] and leaves there
// the state after its last token; without slots with states[r]. States are fp32, and each [H, E, F]
// is contiguous. No two rows may have one state.
at::Tensor gated_delta_rule_with_state(const at::Tensor& q_TKE, const at::Tensor& k_TKE,
                                       const at::Tensor& v_THF, const at::Tensor& log_decay_TH,
                                       const at::Tensor& beta_TH, const RowIndex& rows,
                                       const at::Tensor& states_SHEF,
                                       const std::vector<int64_t>& slots = {});

}  // namespace convoy::kernels
