// SPDX-License-Identifier: Apache-2.0
//
// Copies numbers between the host and a device without waiting for the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace convoy::device {

// Small tables of the host that are copied to `device` together, in one copy. One thread.
class Upload {
 public:
  explicit Upload(at::Device device);

  at::Device device() const { return device_; }
  // Returns a tensor [n] on the device; it has memory and values only after send(). Takes int32_t,
  // int64_t, float, double and std::byte (as int8). `values` is copied before the call returns.
  template <class Value>
  at::Tensor add(std::span<const Value> values);
  template <class Value>
  at::Tensor add(const std::vector<Value>& values) {
    return add(std::span<const Value>(values));
  }
  // Call it once. Async: the copy goes through pinned memory that is kept until the device has read
  // it.
  void send();
  // Sends the same tables with other values into the memory of an earlier upload; the tables of
  // this object get no memory of their own. `bytes`: sent_bytes() of the earlier upload.
  void send_in_place_of(const at::Tensor& bytes) const;
  at::Tensor sent_bytes() const;  // after send(): all tables

 private:
  void copy_to(const at::Tensor& target) const;

  at::Device device_;
  std::vector<std::byte> bytes_;
  at::Tensor sent_;  // bytes; all tensors lie in its storage
};

// A tensor [n] on `device` with `values`. Async: makes and sends one Upload.
template <class Value>
at::Tensor to_device(std::span<const Value> values, at::Device device);

// A copy in the host's pinned memory, with which non_blocking copies do not wait. For a CPU tensor,
// returns `tensor` itself. Blocks.
at::Tensor pinned_copy(const at::Tensor& tensor);

// A copy of a device's tensor to the host, in progress. One thread.
class Download {
 public:
  Download() = default;
  // Async. On CPUs it holds `source` itself, which must not change.
  explicit Download(const at::Tensor& source);

  // Blocks until the device has done the work that was queued before this download.
  const at::Tensor& wait();

 private:
  at::Tensor host_;
  std::optional<c10::Event> copied_;
};

}  // namespace convoy::device
