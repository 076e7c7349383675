// SPDX-License-Identifier: Apache-2.0
//
// Starts Convoy's own kernels (*_cuda.cu) on the GPU of a tensor, in LibTorch's context and on its
// current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/machine/nvidia/kernels.h"

namespace convoy::kernels {

// PTX of every op; empty where Convoy was built without clang++.
nvidia::KernelTexts kernel_texts();

// "NAME_fp32" or "NAME_bf16". Throws StateError for another type.
std::string kernel_name(std::string_view name, at::ScalarType type);

inline constexpr int64_t kVectorBytes = 16;
// May all rows be read and written by vectors of 16 bytes? `width`: elements of a row of each.
bool fits_vectors(std::initializer_list<at::Tensor> tensors, int64_t width);

int64_t elements_per_vector(const at::Tensor& tensor);
// The number of whole vectors in each tensor, all of one type and number of elements; 0 where an
// address is not aligned to a vector.
uint64_t vectors_of(std::initializer_list<at::Tensor> tensors);

// Number of blocks for a kernel that takes `count` elements by for_elements(), `together` at a
// time.
uint64_t blocks_for_elements(int64_t count, int64_t together);

// Async. `parameters` is the one struct that the kernel takes. Its pointers must point into tensors
// of the caller, which LibTorch frees in the order of the stream. The first launch of a kernel
// compiles it. Throws DeviceError, and nvidia::DeviceMemory where there is no room for its code.
//
// `partly_moved`: the bytes that the kernel moves behind a pointer, for each pointer whose memory
// is not moved exactly once as a whole. Only launches that are counted read it (take_launches).
using PartlyMoved = std::vector<std::pair<const void*, int64_t>>;
// add_moved_once: tensors that a kernel reads or writes. add_moved_twice: tensors that it reads and
// writes. Undefined tensors are left out. Only needed for a tensor that is part of a larger memory,
// or that is moved twice.
void add_moved_once(std::initializer_list<at::Tensor> tensors, PartlyMoved& moved);
void add_moved_twice(std::initializer_list<at::Tensor> tensors, PartlyMoved& moved);
void launch_bytes(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
                  std::span<const std::byte> parameters, const PartlyMoved& partly_moved = {});

// The number of blocks of a kernel that the tensor's GPU holds at once; when launches are only
// counted, the number of an H200. Compiles the kernel if it was not started yet, and throws as a
// launch does.
int64_t blocks_at_once(const at::Tensor& on, std::string_view kernel);

template <class Parameters>
void launch(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
            const Parameters& parameters, const PartlyMoved& partly_moved = {}) {
  launch_bytes(on, kernel, blocks, std::as_bytes(std::span(&parameters, 1)), partly_moved);
}

// From here on launches of kernels over tensors of LibTorch's PrivateUse1 device are passed to
// `taker`, which runs no kernel. Null: such launches throw.
using LaunchTaker = void (*)(std::string_view kernel, std::span<const std::byte> parameters,
                             const PartlyMoved& partly_moved);
void take_launches(LaunchTaker taker);

// For tests: while an object lives, kernels over CPU tensors are passed to this driver, which runs
// them on the CPU.
class HostKernels {
 public:
  explicit HostKernels(const std::filesystem::path& driver_library);
  ~HostKernels();
  HostKernels(const HostKernels&) = delete;
  HostKernels& operator=(const HostKernels&) = delete;
};

}  // namespace convoy::kernels
