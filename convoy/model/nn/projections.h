// SPDX-License-Identifier: Apache-2.0
//
// The linear maps at the beginning of a part of a block, which read one input. They are stored
// apart, or as the rows of one map. One thread. Shapes: T tokens, I inputs, O outputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "convoy/model/nn/joined_linears.h"
#include "convoy/model/nn/linear.h"

namespace convoy::nn {

class Projections {
 public:
  // `widths`: the widths of the outputs. Each map has one output, or the outputs are parts of the
  // only map's output.
  Projections(std::vector<Linear> maps, std::vector<int64_t> widths);

  // The outputs at x_TI: [T, O] each, features side by side. Differentiable.
  std::vector<at::Tensor> forward(const at::Tensor& x_TI, DrawKey draw_key) const;

  void join();  // as JoinedLinears::join
  // Quantises all maps; maps that are joined are quantised as one.
  void quantize(const kernels::IntegerFormat& format);
  bool trains() const;
  void visit(const std::function<void(Linear&)>& visitor);

 private:
  std::vector<Linear> maps_;
  std::vector<int64_t> widths_;
  JoinedLinears joined_;
};

}  // namespace convoy::nn
