// SPDX-License-Identifier: Apache-2.0
//
// AdamW (arXiv 1711.05101) in one pass over each parameter, with the arithmetic of
// torch.optim.AdamW. Driven by the training thread. On the CPU equal inputs give equal bits,
// however parameters are cut over ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/model/kernels/adamw/adamw_update.h"
#include "convoy/train/optim/moments.h"

namespace convoy::optim {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // for parameters with `decays`
  StateFormat states = {};
  uint64_t seed = 0;  // for stochastic rounding
};

struct OptimizedParameter {
  std::string name;
  at::Tensor value;     // fp32 or bf16, contiguous; written in place
  at::Tensor gradient;  // fp32 or bf16, contiguous, same shape; read by step()
  bool decays = true;
  double lr_factor = 1;  // multiplies the learning rate
  // For a piece of a parameter. `begin`: index of the first element of `value` in the parameter,
  // for 8-bit moments a multiple of kernels::kMomentBlock. `whole_numel`: number of elements of the
  // parameter; 0 = as many as `value`.
  int64_t begin = 0;
  int64_t whole_numel = 0;
};

// True if a parameter of this name decays, by the rule of the transformers Trainer: biases and norm
// weights do not decay, embeddings do.
bool takes_weight_decay(const std::string& parameter_name);

struct NamedState {
  // "<parameter>.exp_avg" and ".exp_avg_sq"; for 8-bit moments also ".exp_avg_scale" and
  // ".exp_avg_sq_scale"; ".master" for a bf16 parameter that has a master.
  std::string name;
  at::Tensor value;      // shares storage with the optimizer
  size_t parameter = 0;  // its parameter, in the optimizer's order
  // Number of elements of the parameter for each entry of `value`; the last entry may stand for
  // fewer.
  int64_t elements_each = 1;
};

class AdamW {
 public:
  // Throws StateError for a parameter whose type or layout is not allowed.
  AdamW(const AdamWConfig& config, std::vector<OptimizedParameter> parameters);

  // One update with gradient_scale * gradient (the clip coefficient, folded into the pass).
  void step(double learning_rate, double gradient_scale = 1.0);

  // Counts a step that changes nothing.
  void pass_over_step() { ++steps_; }

  int64_t steps() const { return steps_; }
  // Every state tensor in parameter order, for checkpoints. Waits for the device where states are
  // paged.
  std::vector<NamedState> state() const;
  // Copies `state` in; names may come in any order. Throws CheckpointError naming what is missing,
  // unknown, of another shape or type. A bf16 parameter is set from its master.
  void load_state(int64_t steps, const std::vector<NamedState>& state);

  const std::vector<OptimizedParameter>& parameters() const { return parameters_; }

 private:
  struct Slot {
    Moments moments;
    at::Tensor master;  // undefined if there is no master
  };

  kernels::AdamWTensors tensors_of(size_t index, const Moments& moments) const;
  void step_paged(size_t index, const kernels::AdamWStep& step);

  AdamWConfig config_;
  std::vector<OptimizedParameter> parameters_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> names_;  // hashes
  int64_t steps_ = 0;
};

}  // namespace convoy::optim
