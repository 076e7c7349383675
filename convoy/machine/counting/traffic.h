// SPDX-License-Identifier: Apache-2.0
//
// The bytes and launches that an op of LibTorch costs a GPU, by its name and tensors: each tensor
// is read or written once, unless a rule here says otherwise. The rules follow LibTorch 2.11's
// kernels for CUDA (aten/src/ATen/native/cuda).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "convoy/machine/counting/counted_work.h"

namespace convoy::counting {

struct OpTensors {
  std::string name;  // "aten::mm"
  struct Argument {
    at::Tensor tensor;
    bool writes = false;
  };
  std::vector<Argument> arguments;  // on the device
  std::vector<at::Tensor> results;  // new tensors
};

// Bytes of the elements. Broadcast elements count once.
double distinct_bytes(const at::Tensor& tensor);
Content content_of(const at::Tensor& tensor);

Work work_of(const OpTensors& op);

}  // namespace convoy::counting
