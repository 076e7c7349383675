// SPDX-License-Identifier: Apache-2.0
//
// Memory for the packed weights of a model. Weights of few bits are too small for huge pages of
// their own, and products that read them from pages of 4 KiB take a quarter longer (one row, int4,
// two cores of Zen 4): so they lie side by side in larger blocks.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

// Like at::empty of a CPU tensor. The block lives as long as one of its tensors does, so callers
// keep what they take as long as the model. Thread-safe.
at::Tensor empty_panels(at::IntArrayRef sizes, at::ScalarType dtype);

}  // namespace convoy::kernels
