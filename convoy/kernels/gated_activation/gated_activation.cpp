// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/gated_activation/gated_activation.h"

#include "convoy/kernels/gated_activation/gated_activation_reference.h"

namespace convoy::kernels {

at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF, Activation activation) {
  return reference::gated_activation(gate_TF, up_TF, activation);
}

}  // namespace convoy::kernels
