// SPDX-License-Identifier: Apache-2.0
//
// AdamW (arXiv 1711.05101) with the arithmetic of torch.optim.AdamW, over fp32 gradients. A bf16 parameter keeps an
// fp32 master copy that the update reads and writes. One thread drives it; the update itself runs in parallel and gives
// the same bits for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/settings/train_settings.h"

namespace convoy::optim {

struct OptimizedParameter {
  std::string name;
  at::Tensor value;    // fp32 or bf16; updated in place
  bool decays = true;  // weight decay applies
};

// What transformers' Trainer decides: everything decays except biases and norm weights.
bool parameter_decays(const std::string& name);

class AdamW {
 public:
  AdamW(std::vector<OptimizedParameter> parameters, const settings::OptimizerSettings& settings,
        double weight_decay);

  // gradients: fp32, in the order of the parameters, already clipped. Counts one step.
  void step(const std::vector<at::Tensor>& gradients, double lr);

  int64_t num_steps() const { return num_steps_; }
  int64_t state_bytes() const;

  // "<name>.exp_avg", "<name>.exp_avg_sq", and "<name>.master" for bf16 parameters; "num_steps" as an int64 scalar. The
  // tensors share memory with the optimizer.
  std::map<std::string, at::Tensor> state() const;
  // Copies values in and refreshes bf16 parameters from their masters. Throws CheckpointError on a missing, unknown or
  // misshapen tensor.
  void load_state(const std::map<std::string, at::Tensor>& state);

 private:
  std::vector<OptimizedParameter> parameters_;
  std::vector<at::Tensor> exp_avg_;
  std::vector<at::Tensor> exp_avg_sq_;
  std::vector<at::Tensor> master_;  // undefined for fp32 parameters
  settings::OptimizerSettings settings_;
  double weight_decay_;
  int64_t num_steps_ = 0;
};

}  // namespace convoy::optim
