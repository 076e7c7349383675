// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation_reference.h"

namespace convoy::kernels::reference {

at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                            Activation activation) {
  at::Tensor activated =
      activation == Activation::Silu ? at::silu(gate_TF) : at::gelu(gate_TF, "tanh");
  return activated * up_TF;
}

}  // namespace convoy::kernels::reference
