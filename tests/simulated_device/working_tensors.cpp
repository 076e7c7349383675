// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/working_tensors.h"

#include <ATen/ATen.h>

#include <cstring>

#include "simulated_device/allocators.h"
#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

at::Tensor tensor_over(c10::Storage storage, const at::Tensor& like, c10::DispatchKey key,
                       bool is_view) {
  const c10::DispatchKeySet keys(key);
  at::Tensor tensor =
      is_view ? at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, std::move(storage),
                                                         keys, like.dtype())
              : at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                      like.storage_offset());
  return tensor;
}

void keep_memory(void*) {}

c10::Storage working_storage(const c10::Storage& storage) {
  const void* address = storage.data();
  char* view = address == nullptr ? nullptr : machine().device_view(address);
  return {c10::Storage::use_byte_size_t(), storage.nbytes(),
          c10::DataPtr(view, view, &keep_memory, c10::kCPU), &KernelMemory::allocator(),
          /*resizable=*/true};
}

}  // namespace

void add_use(std::vector<Use>& uses, const at::Tensor& tensor, bool writes) {
  if (tensor.numel() == 0) return;
  const auto* begin = static_cast<const char*>(tensor.storage().data());
  if (!is_simulated(tensor) && !machine().is_pinned(begin)) return;
  int64_t last = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    last += (tensor.size(dim) - 1) * tensor.stride(dim);
  const auto item_bytes = static_cast<int64_t>(tensor.element_size());
  begin += tensor.storage_offset() * item_bytes;
  uses.push_back({begin, begin + (last + 1) * item_bytes, writes});
}

at::Tensor make_tensor(c10::Storage storage, const at::Tensor& like, bool is_view) {
  return tensor_over(std::move(storage), like, c10::DispatchKey::PrivateUse1, is_view);
}

at::Tensor WorkingTensors::open(const at::Tensor& tensor) {
  if (!is_simulated(tensor) &&
      !(tensor.has_storage() && machine().is_pinned(tensor.storage().data())))
    return tensor;
  const c10::Storage& storage = tensor.storage();
  const Pair* pair = pair_of(storage, &Pair::device);
  if (pair == nullptr) pair = &pairs_.emplace_back(Pair{storage, working_storage(storage)});
  return tensor_over(pair->working, tensor, c10::DispatchKey::CPU, false);
}

at::Tensor WorkingTensors::close(const at::Tensor& result) {
  if (!result.defined()) return result;
  const Pair* pair = pair_of(result.storage(), &Pair::working);
  if (pair != nullptr) return make_tensor(pair->device, result, true);
  return make_tensor(take_over(result.storage()), result, false);
}

c10::Storage WorkingTensors::take_over(const c10::Storage& result) {
  const size_t bytes = result.nbytes();
  c10::DataPtr data = adopt(result.unsafeGetStorageImpl()->set_data_ptr({}), bytes, device_);
  pairs_.push_back({c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(data),
                                 &device_allocator(), /*resizable=*/true),
                    result});
  return pairs_.back().device;
}

void WorkingTensors::update(const at::Tensor& tensor, const at::Tensor& opened) {
  if (!is_simulated(tensor)) return;
  const c10::Storage& working = opened.storage();
  if (working.data_ptr().get_deleter() != &keep_memory) {
    c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(
        adopt(working.unsafeGetStorageImpl()->set_data_ptr({}), working.nbytes(), device_));
    storage->set_nbytes(working.nbytes());
  }
  if (tensor.sizes() != opened.sizes() || tensor.strides() != opened.strides() ||
      tensor.storage_offset() != opened.storage_offset())
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(opened.sizes(), opened.strides(),
                                                        opened.storage_offset());
}

const WorkingTensors::Pair* WorkingTensors::pair_of(const c10::Storage& storage,
                                                    c10::Storage Pair::*side) const {
  for (const Pair& pair : pairs_)
    if ((pair.*side).unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return &pair;
  return nullptr;
}

}  // namespace convoy::simulated
