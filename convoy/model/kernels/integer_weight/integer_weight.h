// SPDX-License-Identifier: Apache-2.0
//
// A weight of a linear map in few bits: w = scale * code, or scale * code + offset. Shapes: O
// outputs, I inputs, G groups of inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

enum class WeightFormat {
  Int8,  // codes -127 ... 127, one scale per output
  Int4,  // codes -8 ... 7, one scale per group of inputs
  // Codes as in Int4, with a scale and an offset per group: the codes span its lowest to its
  // highest value.
  Int4Zero,
};

// The form of the rows in a product with the weight.
enum class ActivationFormat {
  Model,  // the values
  Int8,   // 32 successive inputs at a time rounded to codes -127 ... 127 of one scale; CPUs alone
};

struct IntegerFormat {
  WeightFormat weight = WeightFormat::Int8;
  int64_t group_inputs = 128;  // for Int4 and Int4Zero: 32, 64 or 128
  ActivationFormat activations = ActivationFormat::Model;
};

struct IntegerWeight {
  IntegerFormat format;
  at::ScalarType dtype = at::kFloat;  // type of the original weight, and of x and y
  at::Tensor codes_OI;                // int8
  at::Tensor scales_OG;               // fp32; for Int4 and Int4Zero numbers that bf16 holds
  at::Tensor offsets_OG;              // as scales_OG; undefined unless Int4Zero

  // fp32 [O, I].
  at::Tensor values() const;
};

// fp32 [T, I]: the values of x_TI, fp32 or bf16, once rounded as ActivationFormat::Int8. A row's
// block with a value that is not finite becomes NaN.
at::Tensor rounded_activations(const at::Tensor& x_TI);

// Nearest codes of `weight_OI`, fp32 or bf16 and finite, on its device. Throws ConfigError for
// another group size, DataError where the weight is not finite.
IntegerWeight quantize_weight(const at::Tensor& weight_OI, const IntegerFormat& format);

}  // namespace convoy::kernels
