// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/kernels.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "convoy/machine/counting/boxed_ops.h"
#include "simulated_device/fallback.h"
#include "simulated_device/work.h"
#include "simulated_device/working_tensors.h"

namespace convoy::simulated {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Makes `device` the current device, from which memory is allocated.
class OnDevice {
 public:
  explicit OnDevice(std::optional<c10::Device> device) : outer_(current_device()) {
    if (device.has_value() && device->has_index()) set_current_device(device->index());
  }
  ~OnDevice() { set_current_device(outer_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::DeviceIndex outer_;
};

void check_layout(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
              "simulated device: only strided tensors");
  TORCH_CHECK(!pin_memory.value_or(false), "only tensors of the CPU can be pinned");
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_layout(layout, pin_memory);
  const OnDevice guard(device);
  return at::detail::empty_generic(sizes, &device_allocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  check_layout(layout, pin_memory);
  const OnDevice guard(device);
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

bool is_pinned(const at::Tensor& tensor) {
  return tensor.has_storage() && machine().is_pinned(tensor.storage().data());
}

void run_copy(const at::Tensor& source, const at::Tensor& target, const Work& work) {
  WorkingTensors tensors(work.stream().device());
  const at::AutoDispatchBelowADInplaceOrView below;
  tensors.open(target).copy_(tensors.open(source));
}

std::vector<Use> uses_of_copy(const at::Tensor& source, const at::Tensor& target) {
  std::vector<Use> uses;
  add_use(uses, source, false);
  add_use(uses, target, true);
  return uses;
}

void copy_on_device(const at::Tensor& source, const at::Tensor& target) {
  const c10::Stream here = current_stream(source.device().index());
  const c10::Stream there = current_stream(target.device().index());
  // As on GPUs, the stream of the source copies. It waits for earlier work of the target's stream,
  // and later work of the target's stream waits for the copy.
  machine().order(there, here);
  run_copy(source, target, Work(source.device(), uses_of_copy(source, target)));
  machine().order(here, there);
}

void copy_to_or_from_host(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const bool to_host = target.is_cpu();
  const at::Tensor& host = to_host ? target : source;
  const Work work(to_host ? source.device() : target.device(), uses_of_copy(source, target));
  run_copy(source, target, work);
  if (!non_blocking || !is_pinned(host)) {
    machine().wait_for_stream(work.stream(), to_host ? "copy to host" : "copy to device", true);
    return;
  }
  std::vector<Use> uses;
  add_use(uses, host, to_host);
  for (const Use& use : uses) machine().guard_pinned(work.moment(), use);
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  if (is_simulated(source) && is_simulated(target))
    copy_on_device(source, target);
  else
    copy_to_or_from_host(source, target, non_blocking);
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  std::vector<Use> uses;
  add_use(uses, tensor, false);
  const Work work(tensor.device(), uses);
  WorkingTensors tensors(tensor.device());
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Scalar value = at::_local_scalar_dense(tensors.open(tensor));
  machine().wait_for_stream(work.stream(), "value on host", true);
  return value;
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  machine().record_stream(tensor.storage().data(), stream);
}

at::Tensor& set_storage_and_shape(at::Tensor& tensor, at::Storage storage, int64_t offset,
                                  at::IntArrayRef sizes, at::IntArrayRef strides) {
  TORCH_CHECK(storage.device() == tensor.device(), "set_ of a tensor of ", tensor.device(),
              " to a storage of ", storage.device());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (strides.empty() && !sizes.empty()) {
    impl->set_sizes_contiguous(sizes);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(sizes, strides, offset);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage) {
  return at::native::set_(tensor, std::move(storage));
}

at::Tensor& set_to_empty(at::Tensor& tensor) {
  const OnDevice guard(tensor.device());
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, device_allocator().allocate(0),
                    &device_allocator(), /*resizable=*/true);
  return set_storage_and_shape(tensor, std::move(none), 0, {0}, {});
}

void own_kernels(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
  library.impl("record_stream", &record_stream);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_and_shape);
  library.impl("set_", &set_to_empty);
}

}  // namespace

void register_kernels() { counting::register_ops<&run_cpu_kernel>(&own_kernels); }

}  // namespace convoy::simulated
