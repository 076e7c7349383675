// SPDX-License-Identifier: Apache-2.0
//
// A device of LibTorch that computes nothing and counts what a GPU would have to do: its tensors
// have sizes and addresses and no memory, ops give results of the right sizes, what the host reads
// is zero (or true). So the code of a model of any size runs here as it is, in seconds.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "convoy/machine/counting/counted_work.h"

namespace convoy::counting {

// Makes `device()` LibTorch's PrivateUse1, of which a process has one. Later calls do nothing.
// Throws StateError where there is another one already.
void install();
c10::Device device();

// From now on all memory that the device holds, and that was given no content before, holds this.
void label_memory(Content content);
// All memory that `tensor` lies in.
void label_memory_of(const at::Tensor& tensor, Content content);
size_t labelled_bytes(Content content);

// The most that tensors took at a time since reset_peak_memory().
int64_t peak_memory_bytes();
void reset_peak_memory();

// All work of all threads while it lives, in its order. One at a time.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  std::vector<Work> take();
};

// A launch of a kernel of Convoy. It moves each block of the device's memory that its parameters
// point into, from the lowest such place on, once; where `partly_moved` names the place, so many
// bytes of it.
void count_launch(std::string_view kernel, std::span<const std::byte> parameters,
                  const std::vector<std::pair<const void*, int64_t>>& partly_moved = {});

}  // namespace convoy::counting
