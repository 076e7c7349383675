// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/refillable_tensor.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <utility>

namespace convoy::device {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.storage().unsafeGetStorageImpl();
}

// The deleter of storages without memory. It distinguishes withheld storages from others.
void withheld(void*) {}

}  // namespace

bool has_memory(const at::Tensor& tensor) {
  return tensor.numel() == 0 || storage_of(tensor).nbytes() > 0;
}

void take_memory(const at::Tensor& tensor) {
  if (has_memory(tensor)) return;
  c10::StorageImpl& storage = storage_of(tensor);
  const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.element_size();
  const c10::DeviceGuard guard(tensor.device());  // the allocator uses the current device
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

// Nothing waits: the device's allocator gives the memory only to later work of the same stream.
void release_memory(const at::Tensor& tensor) {
  c10::StorageImpl& storage = storage_of(tensor);
  storage.set_nbytes(0);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, tensor.device()));
}

at::Tensor tensor_without_memory(at::IntArrayRef shape, const at::TensorOptions& options) {
  const at::Tensor tensor = at::empty(shape, options);
  release_memory(tensor);
  return tensor;
}

// LibTorch checks the bounds of views against the storage's bytes, so the storage has a size.
// LibTorch throws `error` before it uses the pointer.
at::Storage withheld_storage(const at::Tensor& like, std::string error) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), like.numel() * static_cast<int64_t>(like.element_size()),
      at::DataPtr(nullptr, nullptr, &withheld, like.device()), /*allocator=*/nullptr,
      /*resizable=*/false);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(error));
  return at::Storage(std::move(storage));
}

bool is_withheld(const at::Tensor& tensor) {
  return tensor.has_storage() &&
         storage_of(tensor)._mutable_data_ptr_no_checks().get_deleter() == &withheld;
}

// A view needs a storage with memory, so the tensor has memory first.
RefillableTensor::RefillableTensor(int64_t num_elements, const at::TensorOptions& options)
    : flat_(at::empty({num_elements}, options.requires_grad(false))) {}

at::Tensor RefillableTensor::view(int64_t begin, at::IntArrayRef shape) const {
  const at::NoGradGuard no_grad;
  return at::empty({0}, flat_.options())
      .set_(flat_.storage(), begin, shape, c10::contiguous_strides(shape));
}

}  // namespace convoy::device
