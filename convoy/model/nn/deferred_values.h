// SPDX-License-Identifier: Apache-2.0
//
// Values of parameters that have no memory yet: the parameters are tensors without memory
// (device::tensor_without_memory), and a rank reads only the elements that it needs. So it never
// holds another rank's elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "convoy/model/nn/unit.h"

namespace convoy::nn {

class DeferredValues {
 public:
  // Writes the elements from `begin` on, in row-major order, into `out`, a flat tensor, until it is
  // full. Throws the errors of reading.
  using Read = std::function<void(int64_t begin, const at::Tensor& out)>;

  // From now on `read` gives the values of `parameter`.
  void set(const at::Tensor& parameter, Read read);
  bool contains(const at::Tensor& parameter) const;
  // `out` may be on any device and of any float type.
  void read(const at::Tensor& parameter, int64_t begin, const at::Tensor& out) const;

 private:
  std::unordered_map<const c10::TensorImpl*, Read> reads_;
};

// Gives units memory and values while they are used, for code that reads weights before a strategy
// has taken them over. Not collective.
class ReadOnUse : public Residency {
 public:
  // `values` outlives it.
  ReadOnUse(const std::vector<Unit>& units, const DeferredValues& values);
  void acquire(size_t unit) override;
  void release(size_t unit) override;
  bool is_collective() const override { return false; }

 private:
  struct State {
    std::vector<at::Tensor> deferred;
    std::vector<Linear*> linears;  // linears whose packed copies are released with the values
    int uses = 0;
  };
  const DeferredValues& values_;
  std::vector<State> states_;  // by unit
};

}  // namespace convoy::nn
