// SPDX-License-Identifier: Apache-2.0
//
// Cosines and sines of the rotary embedding, computed in fp32 step by step as Hugging Face does, so
// that angles agree to the last bit at long positions too. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::nn {

// fp32, one for each pair of features that rotates; [E/2] where all of them do. LongRope: the
// frequencies of rows within the original positions.
at::Tensor inverse_frequencies(const architecture::RopeSpec& spec, int64_t head_dim);

// The kernels turn feature j with feature j + E/2. Heads whose pairs are elsewhere, or that are
// rotated only in part, are put into this order first. Queries and keys get the same order, so the
// scores do not change.
struct FeatureOrder {
  at::Tensor from_E;  // int64: the model's feature in each place; undefined: the order stays
  at::Tensor back_E;  // the reverse
};
FeatureOrder feature_order(const architecture::RopeSpec& spec, int64_t head_dim);

// x [T, H, E] in that order. Differentiable.
at::Tensor in_order(const at::Tensor& x_THE, const FeatureOrder& order);

class RopeTable {
 public:
  RopeTable(const architecture::RopeSpec& spec, int64_t head_dim);

  // The first place in the tables of a row that will have `row_tokens` tokens. It is 0, except for
  // LongRope's longer rows: their angles lie behind the angles of the original positions.
  int64_t first_position(int64_t row_tokens) const {
    return long_frequencies_E_.defined() && row_tokens > original_positions_ ? original_positions_
                                                                             : 0;
  }

  // Tables of at least `num_positions` rows on `device`; grown by doubling, so a long context costs
  // only what is used of it. Computed on the host: every device has the same angles.
  void ensure(int64_t num_positions, at::Device device = at::kCPU);
  const at::Tensor& cos() const { return cos_PE_; }  // fp32 [P, E/2]
  const at::Tensor& sin() const { return sin_PE_; }
  const FeatureOrder& order() const { return order_; }  // on the device of the tables

 private:
  at::Tensor angles(int64_t num_positions) const;  // [P, pairs that rotate]

  at::Tensor inverse_frequencies_E_;
  at::Tensor long_frequencies_E_;  // LongRope alone
  int64_t original_positions_;
  double scale_;
  int64_t still_pairs_;  // features that stay, as pairs of angle 0
  FeatureOrder order_;
  at::Tensor cos_PE_;
  at::Tensor sin_PE_;
};

}  // namespace convoy::nn
