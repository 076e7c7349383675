// SPDX-License-Identifier: Apache-2.0
//
// A weight that does not change, in bitsandbytes' formats, byte for byte as its files hold it.
// Blocks run over the flattened weight, so they may cross rows. 4 bits: w = table[code] * absmax of
// its block, the even element in the upper half of a byte. 8 bits: w = code * absmax of its row /
// 127. Nested: the absmax are codes of 8 bits themselves, in blocks of 256, and their mean is
// stored too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::kernels {

enum class CodeType { Nf4, Fp4, Int8 };

// "nf4", "fp4", "int8".
const char* code_type_name(CodeType type);

struct BitsandbytesFormat {
  CodeType type = CodeType::Nf4;
  int64_t block = 64;   // elements; with 4 bits: a power of two from 32 to 4096
  bool nested = false;  // scales are coded too; only with 4 bits

  friend bool operator==(const BitsandbytesFormat&, const BitsandbytesFormat&) = default;
};

inline constexpr int64_t kNestedBlock = 256;

struct BitsandbytesWeight {
  BitsandbytesFormat format;
  std::vector<int64_t> shape;         // [O, I] for a linear map
  at::ScalarType dtype = at::kFloat;  // type of the original weight
  at::Tensor codes;                   // uint8 [ceil(n / 2), 1]; Int8: int8 of `shape`
  at::Tensor absmax;                  // fp32 [blocks], uint8 where nested; Int8: fp32 [rows]
  // Defined only when scales are nested.
  at::Tensor nested_absmax;  // fp32 [ceil(blocks / 256)]
  at::Tensor nested_offset;  // fp32 [1]: the mean that was subtracted
  at::Tensor nested_table;   // fp32 [256], the same for every weight

  int64_t numel() const;

  // The stored tensors, by the suffix that follows the weight's own name: "", ".absmax", ...
  struct Part {
    std::string suffix;
    const at::Tensor* tensor = nullptr;
  };
  std::vector<Part> parts() const;
  int64_t num_bytes() const;  // size of all parts
  BitsandbytesWeight to(at::Device device) const;
};

// A weight of `shape` in `format` whose parts have the right types and sizes, and no values.
BitsandbytesWeight declare_bitsandbytes_weight(const BitsandbytesFormat& format,
                                               at::IntArrayRef shape, at::ScalarType dtype,
                                               const at::TensorOptions& options);

// `weight`: fp32, bf16 or fp16 on the CPU, with at least one element; two dimensions for Int8.
// Gives the same bytes as bitsandbytes' CPU code. Throws DataError when a value is not finite,
// ConfigError for a block size that is not allowed.
BitsandbytesWeight encode_weight(const at::Tensor& weight, const BitsandbytesFormat& format);

// The values, rounded once to `dtype` (fp32, bf16 or fp16), on the device of the parts.
at::Tensor decode_weight(const BitsandbytesWeight& weight, at::ScalarType dtype);

}  // namespace convoy::kernels
