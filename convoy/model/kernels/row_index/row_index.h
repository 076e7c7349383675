// SPDX-License-Identifier: Apache-2.0
//
// The first tokens of the rows of a packed batch, on the host and on the device. Made once per
// batch, on the host, so that no op waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/machine/device/transfer.h"

namespace convoy::kernels {

class RowIndex {
 public:
  RowIndex() : RowIndex({0}) {}
  // `starts`: first token of each row, then the number of tokens T. Throws StateError when they do
  // not ascend from 0. Async: nothing waits for the device.
  explicit RowIndex(std::vector<int64_t> starts, at::Device device = at::kCPU);
  // Adds its tensors to `upload`, which the caller sends.
  RowIndex(std::vector<int64_t> starts, device::Upload& upload);

  const std::vector<int64_t>& starts() const { return starts_; }
  int64_t num_rows() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t num_tokens() const { return starts_.back(); }
  int64_t begin(int64_t row) const { return starts_[row]; }
  int64_t length(int64_t row) const { return starts_[row + 1] - starts_[row]; }
  int64_t longest() const { return longest_; }  // tokens of the longest row
  // The starts as int32 [rows + 1] on the device: the cumulative lengths of flash attention.
  const at::Tensor& device_starts() const { return device_starts_; }

 private:
  std::vector<int64_t> starts_;
  int64_t longest_ = 0;
  at::Tensor device_starts_;
};

}  // namespace convoy::kernels
