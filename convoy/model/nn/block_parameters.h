// SPDX-License-Identifier: Apache-2.0
//
// The parameters of one block, which are requested by the ends of their names.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/linear.h"
#include "convoy/model/nn/projections.h"

namespace convoy::nn {

using ParameterSource = std::function<at::Tensor(const architecture::ParameterDeclaration&)>;

// A parameter that belongs to no linear map: the weight of a norm, of a convolution, ...
struct BlockParameter {
  std::string name = {};  // empty: this family has no such parameter
  at::Tensor value = {};

  bool trains() const { return value.defined() && value.requires_grad(); }
};

// Visitors of a block's linear maps and of its other parameters, in the order of the checkpoint.
using LinearVisitor = std::function<void(Linear&)>;
using ParameterVisitor = std::function<void(const std::string& name, at::Tensor& value)>;

inline void visit_parameter(BlockParameter& parameter, const ParameterVisitor& visitor) {
  if (parameter.value.defined()) visitor(parameter.name, parameter.value);
}

class BlockSource {
 public:
  // `source` must outlive it.
  BlockSource(const ParameterSource& source, int64_t index);

  Linear linear(const std::string& suffix, int64_t in, int64_t out, bool bias) const;
  // `widths`: the widths of the outputs. Each map has one output, or the outputs are parts of the
  // only map's output.
  Projections projections(const std::vector<architecture::StoredMap>& maps, int64_t in, bool bias,
                          std::vector<int64_t> widths) const;
  // The weight of a norm. An empty suffix gives an empty parameter.
  BlockParameter norm(const std::string& suffix, int64_t size) const;
  BlockParameter parameter(const std::string& suffix, std::vector<int64_t> shape) const;

 private:
  const ParameterSource& source_;
  std::string prefix_;  // "model.layers.3."
};

}  // namespace convoy::nn
