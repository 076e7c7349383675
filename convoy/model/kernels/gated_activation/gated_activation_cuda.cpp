// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/gated_activation/gated_activation_launch.h"
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"

namespace convoy::kernels {
namespace {

gpu::GatedActivationLaunch launch_of(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                                     Activation activation) {
  return {.gate = gate_TF.const_data_ptr(),
          .up = up_TF.const_data_ptr(),
          .count = static_cast<uint64_t>(gate_TF.numel()),
          .activation = static_cast<uint64_t>(activation)};
}

void start(const char* kernel, const at::Tensor& gate_TF,
           const gpu::GatedActivationLaunch& launched) {
  if (launched.count == 0) return;
  launch(gate_TF, kernel_name(kernel, gate_TF.scalar_type()),
         blocks_for_elements(gate_TF.numel(), elements_per_vector(gate_TF)), launched);
}

// Both inputs have rows at the same stride.
at::Tensor run_on_rows(const at::Tensor& gate_TF, const at::Tensor& up_TF, Activation activation) {
  const int64_t width = gate_TF.size(1), stride = gate_TF.stride(0);
  at::Tensor y_TF = at::empty(gate_TF.sizes(), gate_TF.options());
  gpu::GatedActivationLaunch launched = launch_of(gate_TF, up_TF, activation);
  launched.y = y_TF.mutable_data_ptr();
  launched.width = static_cast<uint64_t>(width);
  launched.between = static_cast<uint64_t>(stride - width);
  if (fits_vectors({gate_TF, up_TF, y_TF}, width) && fits_vectors({gate_TF}, stride))
    launched.num_vectors = launched.count / static_cast<uint64_t>(elements_per_vector(gate_TF));
  start("gated_activation", gate_TF, launched);
  return y_TF;
}

at::Tensor run_forward(const at::Tensor& gate, const at::Tensor& up, Activation activation) {
  const bool is_whole = gate.is_contiguous() && up.is_contiguous();
  if (!is_whole && gate.strides() == up.strides()) return run_on_rows(gate, up, activation);
  const at::Tensor gate_TF = gate.contiguous(), up_TF = up.contiguous();
  at::Tensor y_TF = at::empty(gate_TF.sizes(), gate_TF.options());
  gpu::GatedActivationLaunch launched = launch_of(gate_TF, up_TF, activation);
  launched.y = y_TF.mutable_data_ptr();
  launched.num_vectors = vectors_of({gate_TF, up_TF, y_TF});
  start("gated_activation", gate_TF, launched);
  return y_TF;
}

GatedActivationGradients run_backward(const at::Tensor& grad_TF, const at::Tensor& gate_TF,
                                      const at::Tensor& up_TF, Activation activation) {
  GatedActivationGradients gradients{at::empty(gate_TF.sizes(), gate_TF.options()),
                                     at::empty(up_TF.sizes(), up_TF.options())};
  gpu::GatedActivationLaunch launched = launch_of(gate_TF, up_TF, activation);
  launched.grad = grad_TF.const_data_ptr();
  launched.grad_gate = gradients.gate_TF.mutable_data_ptr();
  launched.grad_up = gradients.up_TF.mutable_data_ptr();
  launched.num_vectors = vectors_of({grad_TF, gate_TF, up_TF, gradients.gate_TF, gradients.up_TF});
  start("gated_activation_backward", gate_TF, launched);
  return gradients;
}

}  // namespace

const GatedActivationOps kGatedActivationCuda = {run_forward, run_backward};

}  // namespace convoy::kernels
