// SPDX-License-Identifier: Apache-2.0
//
// AdamW (arXiv 1711.05101) in one pass over each parameter, with the arithmetic of
// torch.optim.AdamW. Moments and, for bf16 parameters, master weights are fp32. Driven by the
// training thread. On the CPU equal inputs give equal bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/kernels/adamw/adamw_update.h"

namespace convoy::optim {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // of parameters with `decays`
};

struct OptimizedParameter {
  std::string name;
  at::Tensor value;     // fp32 or bf16, contiguous; written in place
  at::Tensor gradient;  // fp32, contiguous, same shape; read by step()
  bool decays = true;
};

// The rule of the transformers Trainer, by name: biases and norm weights do not decay, embeddings
// do.
bool takes_weight_decay(const std::string& parameter_name);

struct NamedState {
  std::string
      name;  // "<parameter>.exp_avg", ".exp_avg_sq", and ".master" where the parameter is bf16
  at::Tensor value;      // fp32, shares storage with the optimizer
  size_t parameter = 0;  // whose it is, in the optimizer's order
};

class AdamW {
 public:
  // Throws StateError for a parameter whose type or layout is not as described.
  AdamW(const AdamWConfig& config, std::vector<OptimizedParameter> parameters);

  // One update with gradient_scale * gradient (the clip coefficient, folded into the pass).
  void step(double learning_rate, double gradient_scale = 1.0);

  int64_t steps() const { return steps_; }
  // Every state tensor in parameter order, for checkpoints.
  std::vector<NamedState> state() const;
  // Copies `state` in; names may come in any order. Throws CheckpointError naming what is missing,
  // unknown or of another shape. A bf16 parameter is set from its master.
  void load_state(int64_t steps, const std::vector<NamedState>& state);
  // The master of a bf16 parameter, the parameter itself otherwise; in parameter order.
  std::vector<at::Tensor> full_precision_values() const;

  const std::vector<OptimizedParameter>& parameters() const { return parameters_; }

 private:
  struct Slot {
    at::Tensor exp_avg;
    at::Tensor exp_avg_sq;
    at::Tensor master;  // undefined where the parameter is fp32
  };

  kernels::AdamWTensors tensors_of(size_t index) const;

  AdamWConfig config_;
  std::vector<OptimizedParameter> parameters_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace convoy::optim
