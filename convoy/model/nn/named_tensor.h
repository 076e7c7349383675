// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace convoy::nn {

struct NamedTensor {
  std::string name;  // Hugging Face's name: "model.layers.0.input_layernorm.weight"
  at::Tensor value;  // shares storage with the model
};

}  // namespace convoy::nn
