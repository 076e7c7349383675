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

// Makes `device()` LibTorch's device type PrivateUse1, of which a process has one. Later calls do
// nothing. Throws StateError when another device has this type already.
void install();
c10::Device device();

// Labels all memory that the device holds now and that has no label yet.
void label_memory(Content content);
// Labels the whole memory block that holds `tensor`.
void label_memory_of(const at::Tensor& tensor, Content content);
size_t labelled_bytes(Content content);

// The largest memory of living tensors since reset_peak_memory().
int64_t peak_memory_bytes();
void reset_peak_memory();

// Records the work of all threads, in order, as long as it exists. Only one may exist at a time.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  std::vector<Work> take();
};

// Counts a launch of one of Convoy's kernels. Its parameters point into blocks of the device's
// memory. The kernel moves each block once, from the lowest such address to the end of the block.
// For an address in `partly_moved` it moves only the given number of bytes.
void count_launch(std::string_view kernel, std::span<const std::byte> parameters,
                  const std::vector<std::pair<const void*, int64_t>>& partly_moved = {});

}  // namespace convoy::counting
