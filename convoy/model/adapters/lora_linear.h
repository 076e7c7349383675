// SPDX-License-Identifier: Apache-2.0
//
// The LoRA and DoRA maps on one linear (arXiv 2106.09685, 2402.09353). LoRA's backward is written
// by hand: the low-rank product is added in place, and the input gradient is computed only where
// something below trains. DoRA is differentiated by autograd, its norm held still as in PEFT.
// Neither computes a gradient of the frozen weight. Shapes: I inputs, O outputs, R rank, S ranks of
// several adapters.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/model/adapters/rounded_factors.h"
#include "convoy/model/nn/linear.h"

namespace convoy::adapters {

struct Dropout {
  double share = 0;  // share of the elements that are dropped, in [0, 1)
  uint64_t key = 0;  // key of this module's draws
};

class LoraLinear final : public nn::LinearAdapter {
 public:
  // a_RI and b_OR: fp32 leaves that require grad. magnitude_O: the same for DoRA, else undefined.
  // `factors`: the factors of all adapters of the model; null: the adapter keeps only its own.
  LoraLinear(at::Tensor a_RI, at::Tensor b_OR, at::Tensor magnitude_O, double scaling,
             Dropout dropout, std::shared_ptr<RoundedFactors> factors = nullptr);

  // x [..., I], fp32 or bf16, to y = W x + b + scaling * B A drop(x), computed in the type of x.
  // With a magnitude: y = W x + b + (s - 1) W drop(x) + s * scaling * B A drop(x), where s =
  // magnitude / ||W + scaling * B A||, as in PEFT. Nothing is dropped without a draw key. The
  // weight of `base` must not change until backward has run. One thread at a time.
  at::Tensor forward(const nn::Linear& base, const at::Tensor& x,
                     nn::DrawKey draw_key) const override;
  // For LoRA maps that have one scaling and no dropout: one product for all A.
  std::vector<at::Tensor> forward_together(const std::vector<const nn::Linear*>& bases,
                                           const at::Tensor& x,
                                           nn::DrawKey draw_key) const override;

  bool adds() const override { return !magnitude_O_.defined(); }
  void add_to(const at::Tensor& y_TO, const at::Tensor& x_TI) const override;

  // W + scaling * B A, or magnitude / ||.|| times it, in fp32: the weight of a merged model.
  at::Tensor merged_weight(const at::Tensor& weight_OI) const;

  double scaling() const { return scaling_; }
  const at::Tensor& a() const { return a_RI_; }
  const at::Tensor& b() const { return b_OR_; }
  const at::Tensor& magnitude() const { return magnitude_O_; }

 private:
  // Row norms of W + scaling * B A, and the versions of W, A and B from which they were computed.
  struct Norm {
    at::Tensor value_O;
    at::Tensor weight_OI;
    std::array<int64_t, 3> versions{};
  };

  const RoundedFactors::Pair& factors_of(at::ScalarType dtype) const {
    return factors_->of(number_, dtype);
  }
  at::Tensor dora_forward(const nn::Linear& base, const at::Tensor& x, double share,
                          uint64_t key) const;
  // Computed again only after W, A or B changed: all micro-batches of a step, recomputed passes and
  // evaluations use one result.
  const at::Tensor& norm(const nn::Linear& base) const;

  at::Tensor a_RI_;
  at::Tensor b_OR_;
  at::Tensor magnitude_O_;
  double scaling_;
  Dropout dropout_;
  std::shared_ptr<RoundedFactors> factors_;
  size_t number_;  // this adapter's number in factors_
  mutable Norm norm_;
};

}  // namespace convoy::adapters
