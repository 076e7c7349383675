// SPDX-License-Identifier: Apache-2.0
//
// Linear maps of one input. For inference they are one product: a GPU starts one kernel in place of
// several, and reads the input once. In training the maps share the work that they can share, and
// their gradients of the input are one sum. The maps keep their names, adapters and values. One
// thread. Shapes: T tokens, I inputs, O outputs of one map.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/model/nn/linear.h"

namespace convoy::nn {

class JoinedLinears {
 public:
  // Weights, or codes, and biases move into one tensor each; the parts' tensors become views of it.
  // While they move, this takes as much memory again as the parts have. Parts that train, are
  // quantised already or differ in form stay as they are. A second call does nothing.
  void join(const std::vector<Linear*>& parts);

  // Quantises the parts (Linear::quantize), joined ones as one map.
  void quantize(const std::vector<Linear*>& parts, const kernels::IntegerFormat& format);

  // The outputs of the parts at x_TI, through their adapters: [T, O] each, features side by side.
  // One product where the parts are joined and nothing is recorded for backward. Differentiable.
  std::vector<at::Tensor> forward(const std::vector<const Linear*>& parts, const at::Tensor& x_TI,
                                  DrawKey draw_key) const;

 private:
  bool holds(const std::vector<const Linear*>& parts) const;

  std::unique_ptr<Linear> whole_;  // null: not joined
};

}  // namespace convoy::nn
