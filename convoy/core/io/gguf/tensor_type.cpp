// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/tensor_type.h"

#include <array>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::gguf {
namespace {

constexpr std::array<TensorTypeInfo, 25> kReadTypes = {{{TensorType::F32, "f32", 1, 4},
                                                        {TensorType::F16, "f16", 1, 2},
                                                        {TensorType::BF16, "bf16", 1, 2},
                                                        {TensorType::Q8_0, "q8_0", 32, 34},
                                                        {TensorType::Q4_0, "q4_0", 32, 18},
                                                        {TensorType::Q4_1, "q4_1", 32, 20},
                                                        {TensorType::Q5_0, "q5_0", 32, 22},
                                                        {TensorType::Q5_1, "q5_1", 32, 24},
                                                        {TensorType::Q2_K, "q2_k", 256, 84},
                                                        {TensorType::Q3_K, "q3_k", 256, 110},
                                                        {TensorType::Q4_K, "q4_k", 256, 144},
                                                        {TensorType::Q5_K, "q5_k", 256, 176},
                                                        {TensorType::Q6_K, "q6_k", 256, 210},
                                                        {TensorType::IQ2_XXS, "iq2_xxs", 256, 66},
                                                        {TensorType::IQ2_XS, "iq2_xs", 256, 74},
                                                        {TensorType::IQ2_S, "iq2_s", 256, 82},
                                                        {TensorType::IQ3_XXS, "iq3_xxs", 256, 98},
                                                        {TensorType::IQ3_S, "iq3_s", 256, 110},
                                                        {TensorType::IQ1_S, "iq1_s", 256, 50},
                                                        {TensorType::IQ1_M, "iq1_m", 256, 56},
                                                        {TensorType::IQ4_NL, "iq4_nl", 32, 18},
                                                        {TensorType::IQ4_XS, "iq4_xs", 256, 136},
                                                        {TensorType::TQ1_0, "tq1_0", 256, 54},
                                                        {TensorType::TQ2_0, "tq2_0", 256, 66},
                                                        {TensorType::MXFP4, "mxfp4", 32, 17}}};

constexpr std::array<std::pair<uint32_t, std::string_view>, 8> kOtherTypes = {{{9, "q8_1"},
                                                                               {15, "q8_k"},
                                                                               {24, "i8"},
                                                                               {25, "i16"},
                                                                               {26, "i32"},
                                                                               {27, "i64"},
                                                                               {28, "f64"},
                                                                               {40, "nvfp4"}}};

}  // namespace

std::span<const TensorTypeInfo> tensor_types() { return kReadTypes; }

const TensorTypeInfo* find_tensor_type(uint32_t number) {
  for (const TensorTypeInfo& info : kReadTypes)
    if (static_cast<uint32_t>(info.type) == number) return &info;
  return nullptr;
}

const TensorTypeInfo& info_of(TensorType type) {
  const TensorTypeInfo* const info = find_tensor_type(static_cast<uint32_t>(type));
  CONVOY_INVARIANT(info != nullptr, "type {}", static_cast<uint32_t>(type));
  return *info;
}

std::string tensor_type_name(uint32_t number) {
  if (const TensorTypeInfo* const info = find_tensor_type(number)) return std::string(info->name);
  for (const auto& [other, name] : kOtherTypes)
    if (other == number) return std::string(name);
  return fmt::format("type {}", number);
}

}  // namespace convoy::gguf
