// SPDX-License-Identifier: Apache-2.0
//
// A flat tensor whose memory may go and come back while views of it stay: graphs that hold a view
// find the values again in the same place. (PyTorch's FSDP resizes storages for the same end.)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::device {

class RefillableTensor {
 public:
  RefillableTensor() = default;
  // With memory.
  RefillableTensor(int64_t num_elements, const at::TensorOptions& options);

  // [num_elements]; not to be read or written without memory.
  const at::Tensor& flat() const { return flat_; }
  // `shape` from element `begin` on: a tensor of its own, with its own version, on the same storage.
  // Made while there is memory.
  at::Tensor view(int64_t begin, at::IntArrayRef shape) const;

  bool has_memory() const;
  void take_memory();     // the values are undefined; nothing to do where it has memory
  void release_memory();  // for other work of the same stream

 private:
  at::Tensor flat_;
};

}  // namespace convoy::device
