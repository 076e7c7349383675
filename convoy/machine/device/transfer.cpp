// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/transfer.h"

#include <algorithm>

namespace convoy::device {

template <class Value>
at::Tensor to_device(std::span<const Value> values, at::Device device) {
  const auto options = at::TensorOptions().dtype(c10::CppTypeToScalarType<Value>::value);
  at::Tensor host = at::empty({static_cast<int64_t>(values.size())},
                              device.is_cpu() ? options : options.pinned_memory(true));
  std::copy(values.begin(), values.end(), host.template mutable_data_ptr<Value>());
  return device.is_cpu() ? host : host.to(device, /*non_blocking=*/true);
}

template at::Tensor to_device(std::span<const int32_t>, at::Device);
template at::Tensor to_device(std::span<const int64_t>, at::Device);
template at::Tensor to_device(std::span<const float>, at::Device);
template at::Tensor to_device(std::span<const double>, at::Device);

}  // namespace convoy::device
