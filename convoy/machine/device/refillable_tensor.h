// SPDX-License-Identifier: Apache-2.0
//
// A flat tensor whose memory can be released and taken again while views of it exist. A graph that
// holds a view finds the values at the same address again. (PyTorch's FSDP resizes storages for the
// same purpose.)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace convoy::device {

// These three functions act on the storage of `tensor`, which other tensors may share.
// take_memory() does nothing if there is memory; the values are undefined afterwards. Other work of
// the same stream may use released memory.
bool has_memory(const at::Tensor& tensor);
void take_memory(const at::Tensor& tensor);
void release_memory(const at::Tensor& tensor);

// A contiguous tensor of this shape without memory; take_memory() makes it usable.
at::Tensor tensor_without_memory(at::IntArrayRef shape, const at::TensorOptions& options);

// A storage for the elements of `like` without memory. Reading or writing the elements throws a
// c10::Error with this text.
at::Storage withheld_storage(const at::Tensor& like, std::string error);
bool is_withheld(const at::Tensor& tensor);

class RefillableTensor {
 public:
  RefillableTensor() = default;
  // Makes the tensor with memory.
  RefillableTensor(int64_t num_elements, const at::TensorOptions& options);

  // [num_elements]; must not be read or written without memory.
  const at::Tensor& flat() const { return flat_; }
  // Returns a tensor of `shape` from element `begin` on, with its own version, on the same storage.
  // Call it while there is memory.
  at::Tensor view(int64_t begin, at::IntArrayRef shape) const;

  // These do the same as the functions of the same names above.
  bool has_memory() const { return device::has_memory(flat_); }
  void take_memory() { device::take_memory(flat_); }
  void release_memory() { device::release_memory(flat_); }

 private:
  at::Tensor flat_;
};

}  // namespace convoy::device
