// SPDX-License-Identifier: Apache-2.0
//
// Cosines and sines of the rotary embedding, computed in fp32 step by step as Hugging Face does, so
// that angles agree to the last bit at long positions too. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::nn {

// fp32 [E/2] for heads of `head_dim` features.
at::Tensor inverse_frequencies(const architecture::RopeSpec& spec, int64_t head_dim);

class RopeTable {
 public:
  RopeTable(const architecture::RopeSpec& spec, int64_t head_dim);

  // Tables of at least `num_positions` rows on `device`; grown by doubling, so a long context costs
  // only what is used of it. Computed on the host: every device has the same angles.
  void ensure(int64_t num_positions, at::Device device = at::kCPU);
  const at::Tensor& cos() const { return cos_PE_; }  // fp32 [P, E/2]
  const at::Tensor& sin() const { return sin_PE_; }

 private:
  at::Tensor inverse_frequencies_E_;
  double scale_;
  at::Tensor cos_PE_;
  at::Tensor sin_PE_;
};

}  // namespace convoy::nn
