// SPDX-License-Identifier: Apache-2.0
//
// Inputs of a pass's blocks that wait for backward in the host's pinned memory. They are copied
// there on a separate stream, beside the work of the blocks, and copied back while the block after
// them is computed again.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace convoy::nn {

// Driven by the thread that runs the model, then by autograd's thread.
class InputsOnHost {
 public:
  explicit InputsOnHost(at::Device device);

  // Keeps `x` and returns its number for take(). Async: `x` must not be changed.
  size_t keep(const at::Tensor& x);
  // Takes the input back, once for each number, the last number first. Async: for work of the
  // current stream.
  at::Tensor take(size_t number);

 private:
  struct Kept {
    at::Tensor host = {};
    at::Tensor back = {};
    std::optional<c10::Event> is_back = {};
  };
  void bring(Kept& kept);

  const at::Device device_;
  const c10::Stream stream_;
  std::vector<Kept> kept_;
};

}  // namespace convoy::nn
