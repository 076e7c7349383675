// SPDX-License-Identifier: Apache-2.0
//
// A weight of a linear map in few bits: w = scale * code + offset. Shapes: O outputs, I inputs, G
// groups of inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

enum class WeightFormat {
  Int8,      // steps -127 ... 127, one scale per output
  Int4,      // codes 0 ... 15 for steps -8 ... 7 of a group's scale
  Int4Zero,  // codes 0 ... 15 from the lowest to the highest of a group
};

struct QuantizedFormat {
  WeightFormat weight = WeightFormat::Int8;
  int64_t group_inputs = 128;  // of Int4 and Int4Zero: 32, 64 or 128
};

struct QuantizedWeight {
  QuantizedFormat format;
  at::ScalarType dtype = at::kFloat;  // of the weight that it was, and of x and y
  at::Tensor codes_OI;                // int8, or uint8 where there are 16
  at::Tensor scales_OG;               // fp32; of Int4 and Int4Zero numbers that bf16 holds
  at::Tensor offsets_OG;              // the same; undefined for Int8

  // What the products multiply by, before it is rounded to `dtype`: fp32 [O, I].
  at::Tensor values() const;
};

// Nearest codes of `weight_OI`, fp32 or bf16 and finite, on its device. Throws ConfigError for
// another group size, DataError where the weight is not finite.
QuantizedWeight quantize_weight(const at::Tensor& weight_OI, const QuantizedFormat& format);

}  // namespace convoy::kernels
