// SPDX-License-Identifier: Apache-2.0
//
// The types of GGUF's tensors. Codes of few bits are stored in blocks: a block holds a fixed number
// of values of a row, with their scales, in a fixed number of bytes (ggml-common.h of llama.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace convoy::gguf {

// The numbers of the format. A type that is missing here is refused, with its name.
enum class TensorType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;  // "q4_k"
  int64_t block_values;
  int64_t block_bytes;
};

// The types that Convoy reads.
std::span<const TensorTypeInfo> tensor_types();
// Null: Convoy does not read this type.
const TensorTypeInfo* find_tensor_type(uint32_t number);
const TensorTypeInfo& info_of(TensorType type);
// The name of any type of the format; "type 99" for other numbers.
std::string tensor_type_name(uint32_t number);

}  // namespace convoy::gguf
