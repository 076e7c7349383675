// SPDX-License-Identifier: Apache-2.0
//
// The LoRA and DoRA maps on one linear (arXiv 2106.09685, 2402.09353), with backward written by hand: no gradient of
// the frozen weight, no input gradient where nothing below trains, and the low-rank product added in place.
// Shapes: T tokens, I inputs, O outputs, R rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "convoy/nn/linear.h"

namespace convoy::adapters {

class LoraLinear final : public nn::LinearAdapter {
 public:
  // a_RI and b_OR: fp32 leaves that require grad. magnitude_O: DoRA's, else undefined.
  LoraLinear(at::Tensor a_RI, at::Tensor b_OR, at::Tensor magnitude_O, double scaling,
             double dropout);

  // y = W x + b + scaling * B A drop(x); with a magnitude, PEFT's DoRA forward (its norm is detached).
  // Dropout draws from torch's default generator, and only in training mode.
  at::Tensor forward(const nn::Linear& base, const at::Tensor& x) const override;

  // Dropout on or off; on at construction.
  void set_training(bool training) { training_ = training; }

  // W + scaling * B A, or magnitude / ||.|| times it, in fp32: what a merged model holds.
  at::Tensor merged_weight(const at::Tensor& weight_OI) const;

  const at::Tensor& a() const { return a_RI_; }
  const at::Tensor& b() const { return b_OR_; }
  const at::Tensor& magnitude() const { return magnitude_O_; }

 private:
  at::Tensor dora_forward(const nn::Linear& base, const at::Tensor& x) const;

  at::Tensor a_RI_;
  at::Tensor b_OR_;
  at::Tensor magnitude_O_;
  double scaling_;
  double dropout_;
  bool training_ = true;
};

}  // namespace convoy::adapters
