// SPDX-License-Identifier: Apache-2.0
//
// The parts of a model's parameters, and the notices of their use: the whole interface between a
// model and sharding. A unit is read only between acquire() and release(); between two uses its
// memory may be gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "convoy/model/nn/named_tensor.h"

namespace convoy::nn {

class Linear;

// Parameters that are used together.
struct Unit {
  std::string name;                       // "model.layers.3"
  std::vector<NamedTensor> frozen = {};   // parameters that nothing trains
  std::vector<NamedTensor> trained = {};  // leaves that require grad, an adapter's among them
  std::vector<Linear*> linears = {};  // linears whose packed weights are copies of these parameters
  // Tensors that a training forward changes and backward does not use, such as running means: fp32
  // or int64. Strategies keep them equal on all ranks by taking rank 0's.
  std::vector<NamedTensor> buffers = {};
};

// The owner of the parameters of units. Driven by the thread that runs the model, or by autograd's
// thread while the first one waits for it.
class Residency {
 public:
  virtual ~Residency() = default;
  // The parameters of the unit hold their values from here on. Uses of one unit may overlap. May be
  // collective: all ranks use the same units in the same order.
  virtual void acquire(size_t unit) = 0;
  // Are uses collective? Then all ranks have to run every pass, backward included, even a rank
  // without rows of its own.
  virtual bool is_collective() const = 0;
  // The end of a use.
  virtual void release(size_t unit) = 0;
};

// One use of a unit in a forward pass, from construction to destruction, and the use in backward
// that belongs to it. Without a residency it does nothing.
class UnitUse {
 public:
  UnitUse(Residency* residency, size_t unit);
  ~UnitUse();
  UnitUse(const UnitUse&) = delete;
  UnitUse& operator=(const UnitUse&) = delete;

  // `input` and `output` of the unit's computation, wrapped for autograd: backward acquires the
  // unit at the output, and releases it at the input. An input that does not require grad is never
  // reached by backward: the residency ends such uses with the pass.
  at::Tensor enter(const at::Tensor& input) const;
  at::Tensor leave(const at::Tensor& output) const;

 private:
  Residency* residency_;
  size_t unit_;
};

}  // namespace convoy::nn
