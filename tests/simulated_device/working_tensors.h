// SPDX-License-Identifier: Apache-2.0
//
// Converts device tensors to CPU tensors over the device's view of the same bytes, for CPU kernels,
// and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "simulated_device/blocks.h"

namespace convoy::simulated {

inline bool is_simulated(const at::TensorBase& tensor) { return tensor.is_privateuseone(); }

// Adds the bytes from the tensor's first to its last element. Adds nothing for ordinary host
// memory.
void add_use(std::vector<Use>& uses, const at::Tensor& tensor, bool writes);

at::Tensor make_tensor(c10::Storage storage, const at::Tensor& like, bool is_view);

class WorkingTensors {
 public:
  explicit WorkingTensors(c10::Device device) : device_(device) {}

  // Returns a CPU tensor over the same bytes. Tensors that share storage share it there too. A
  // tensor in ordinary host memory is returned as it is.
  at::Tensor open(const at::Tensor& tensor);

  // Returns a result of the kernel as a tensor of the device: a view of an opened tensor, or new
  // memory.
  at::Tensor close(const at::Tensor& result);

  // Gives `tensor` the shape that the kernel gave to `opened`, and its memory if the kernel
  // replaced that.
  void update(const at::Tensor& tensor, const at::Tensor& opened);

 private:
  struct Pair {
    c10::Storage device;
    c10::Storage working;
  };
  const Pair* pair_of(const c10::Storage& storage, c10::Storage Pair::*side) const;
  c10::Storage take_over(const c10::Storage& result);

  c10::Device device_;
  std::vector<Pair> pairs_;
};

}  // namespace convoy::simulated
