// SPDX-License-Identifier: Apache-2.0
//
// Tensors from safetensors views, and the reverse. The only file that converts between the two.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/piece_reader.h"

namespace convoy::device {

// Throws StateError for types that only one side has.
io::Dtype stored_dtype(at::ScalarType dtype);
at::ScalarType tensor_dtype(io::Dtype dtype);
// True for the types that weights are converted from: floating point of 16, 32 or 64 bits.
bool is_float(io::Dtype dtype);

// A CPU tensor that owns its memory, in the stored type.
at::Tensor copy_to_tensor(const io::TensorView& view);
// A CPU tensor that owns its memory, converted to `dtype`.
at::Tensor copy_to_tensor(const io::TensorView& view, at::ScalarType dtype);

// A source over `tensor`. Keeps the tensor alive, and reads its values only when the source is
// written. `reader` copies the values from a device; null: the source makes its own. Sources that
// are written one after another may share a reader.
io::TensorSource tensor_source(const std::string& name, const at::Tensor& tensor,
                               std::shared_ptr<PieceReader> reader = nullptr);

}  // namespace convoy::device
