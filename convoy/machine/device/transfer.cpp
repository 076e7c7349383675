// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/transfer.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy::device {
namespace {

constexpr size_t kAlignment = 16;  // kernels read vectors of this many bytes

template <class Value>
constexpr at::ScalarType type_of() {
  if constexpr (std::is_same_v<Value, std::byte>)
    return at::kChar;
  else
    return c10::CppTypeToScalarType<Value>::value;
}

// Makes the view without LibTorch's dispatcher, since a step has dozens of tables.
template <class Value>
at::Tensor view(const at::Tensor& bytes, size_t begin, size_t count) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(bytes.storage()), bytes.key_set(), c10::scalarTypeToTypeMeta(type_of<Value>()));
  const std::array<int64_t, 1> sizes{static_cast<int64_t>(count)};
  const std::array<int64_t, 1> strides{1};
  made.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(sizes),
                                                    at::IntArrayRef(strides),
                                                    static_cast<int64_t>(begin / sizeof(Value)));
  return made;
}

}  // namespace

Upload::Upload(at::Device device)
    : device_(device), sent_(at::empty({0}, at::TensorOptions().dtype(at::kByte).device(device))) {}

template <class Value>
at::Tensor Upload::add(std::span<const Value> values) {
  const size_t begin = bytes_.size();
  const auto added = std::as_bytes(values);
  bytes_.insert(bytes_.end(), added.begin(), added.end());
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
  return view<Value>(sent_, begin, values.size());
}

at::Tensor Upload::sent_bytes() const { return view<uint8_t>(sent_, 0, bytes_.size()); }

void Upload::send_in_place_of(const at::Tensor& bytes) const {
  CONVOY_INVARIANT(bytes.numel() == std::ssize(bytes_), "tables of {} bytes take the place of {}",
                   bytes_.size(), bytes.numel());
  copy_to(bytes);
}

void Upload::send() {
  if (bytes_.empty()) return;
  c10::StorageImpl& storage = *sent_.storage().unsafeGetStorageImpl();
  {
    const c10::DeviceGuard guard(device_);  // the allocator uses the current device
    storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes_.size()));
    storage.set_nbytes(bytes_.size());
  }
  copy_to(sent_bytes());
}

void Upload::copy_to(const at::Tensor& target) const {
  if (device_.is_cpu()) {
    std::memcpy(target.mutable_data_ptr(), bytes_.data(), bytes_.size());
    return;
  }
  const at::Tensor host =
      at::empty(target.sizes(), at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  std::memcpy(host.mutable_data_ptr(), bytes_.data(), bytes_.size());
  target.copy_(host, /*non_blocking=*/true);
}

template at::Tensor Upload::add(std::span<const int32_t>);
template at::Tensor Upload::add(std::span<const int64_t>);
template at::Tensor Upload::add(std::span<const float>);
template at::Tensor Upload::add(std::span<const double>);
template at::Tensor Upload::add(std::span<const std::byte>);

template <class Value>
at::Tensor to_device(std::span<const Value> values, at::Device device) {
  Upload upload(device);
  at::Tensor sent = upload.add(values);
  upload.send();
  return sent;
}

template at::Tensor to_device(std::span<const int32_t>, at::Device);
template at::Tensor to_device(std::span<const int64_t>, at::Device);
template at::Tensor to_device(std::span<const float>, at::Device);
template at::Tensor to_device(std::span<const double>, at::Device);
template at::Tensor to_device(std::span<const uint8_t>, at::Device);

at::Tensor pinned_copy(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const c10::DeviceGuard guard(tensor.device());
  const auto options = tensor.options().device(at::kCPU).pinned_memory(true).requires_grad(false);
  return at::empty(tensor.sizes(), options).copy_(tensor.detach());
}

Download::Download(const at::Tensor& source) : host_(source) {
  const at::Device device = source.device();
  if (device.is_cpu()) return;
  const c10::DeviceGuard guard(device);
  host_ = at::empty(source.sizes(), source.options().device(at::kCPU).pinned_memory(true));
  host_.copy_(source, /*non_blocking=*/true);
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

const at::Tensor& Download::wait() {
  if (copied_) copied_->synchronize();
  copied_.reset();
  return host_;
}

}  // namespace convoy::device
