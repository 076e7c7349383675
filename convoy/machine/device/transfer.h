// SPDX-License-Identifier: Apache-2.0
//
// Small tables of the host on their way to a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace convoy::device {

// A tensor [n] on `device` with `values`. Async: the copy goes through pinned memory that is kept
// until the device has read it, so `values` may change at once. int32_t, int64_t, float and double.
template <class Value>
at::Tensor to_device(std::span<const Value> values, at::Device device);

}  // namespace convoy::device
