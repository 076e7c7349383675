// SPDX-License-Identifier: Apache-2.0
//
// Compares types that Convoy writes with ggml's quantisers, and types that it only reads with the
// Python package gguf (tests/golden/gguf).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/encode.h"
#include "convoy/core/io/gguf/file_type.h"
#include "convoy/core/io/gguf/half.h"
#include "convoy/core/io/safetensors.h"
#include "files/source_folder.h"

namespace convoy::gguf {
namespace {

std::vector<float> floats_of(const io::TensorView& view) {
  std::vector<float> values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

class Codes : public ::testing::Test {
 protected:
  const io::TensorView& tensor(std::string_view type, const char* part) const {
    const std::string name = std::string(type) + part;
    return file_.find(name) != nullptr ? *file_.find(name) : only_read_.require(name);
  }
  io::SafetensorsFile file_{testing::source_folder() / "tests/golden/gguf/types.safetensors"};
  io::SafetensorsFile only_read_{testing::source_folder() /
                                 "tests/golden/gguf/codebooks.safetensors"};
};

TEST_F(Codes, AreReadAsThePackageReadsThem) {
  int types = 0;
  for (const TensorTypeInfo& info : tensor_types()) {
    if (info.type == TensorType::F32) continue;
    ++types;
    const std::vector<float> wanted = floats_of(tensor(info.name, ".values"));
    std::vector<float> found(wanted.size());
    decode(info.type, tensor(info.name, ".blocks").bytes, found);
    EXPECT_EQ(std::memcmp(found.data(), wanted.data(), wanted.size() * sizeof(float)), 0)
        << info.name;
  }
  EXPECT_EQ(types, 24);
}

TEST_F(Codes, AreTheBytesOfGgmlsQuantisers) {
  const std::vector<float> values = floats_of(file_.require("input"));
  int types = 0;
  for (const TensorTypeInfo& info : tensor_types()) {
    if (info.type == TensorType::F32 || !can_encode(info.type)) continue;
    ++types;
    const std::span<const std::byte> wanted = tensor(info.name, ".blocks").bytes;
    std::vector<std::byte> found(wanted.size());
    encode(info.type, values, found);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin())) << info.name;
  }
  EXPECT_EQ(types, 10);
}

TEST(Halves, AllAreThemselvesAndWhatLiesBetweenIsRounded) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_of_half(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(half_of_float(value), half) << bits;
    if (std::isinf(value) || half == 0x7bff || half == 0xfbff) continue;
    // A number midway between two neighbours goes to the even one.
    const float next = float_of_half(static_cast<uint16_t>(half + 1));
    const float middle = value + (next - value) / 2;
    EXPECT_EQ(half_of_float(middle), half % 2 == 0 ? half : half + 1) << bits;
  }
  EXPECT_EQ(half_of_float(65520.0f), 0x7c00);
  EXPECT_EQ(half_of_float(65519.0f), 0x7bff);
  EXPECT_EQ(bfloat_of_float(1.00390625f), 0x3f80);  // a tie
  EXPECT_EQ(bfloat_of_float(1.01171875f), 0x3f82);
}

// llama-quantize chooses these types for a model of 32 layers (llama-quant.cpp).
TEST(FileTypes, ChooseTheTypeOfEachTensor) {
  const TypeChoice model{.num_layers = 32};
  const auto type = [&](const char* file, const std::string& name, std::vector<int64_t> shape) {
    return choose_type(file_type(file), model, name, shape).type;
  };
  EXPECT_EQ(type("q4_k_m", "blk.0.attn_q.weight", {64, 256}), TensorType::Q4_K);
  EXPECT_EQ(type("q4_k_m", "blk.3.attn_v.weight", {64, 256}), TensorType::Q6_K);
  EXPECT_EQ(type("q4_k_m", "blk.4.attn_v.weight", {64, 256}), TensorType::Q4_K);
  EXPECT_EQ(type("q4_k_m", "blk.6.ffn_down.weight", {64, 256}), TensorType::Q6_K);
  EXPECT_EQ(type("q4_k_m", "blk.31.ffn_down.weight", {64, 256}), TensorType::Q6_K);
  EXPECT_EQ(type("q4_k_s", "blk.3.attn_v.weight", {64, 256}), TensorType::Q5_K);
  EXPECT_EQ(type("q4_k_s", "blk.3.ffn_down.weight", {64, 256}), TensorType::Q5_K);
  EXPECT_EQ(type("q4_k_s", "blk.4.ffn_down.weight", {64, 256}), TensorType::Q4_K);
  EXPECT_EQ(type("q4_k_m", "blk.4.attn_qkv.weight", {64, 256}), TensorType::Q5_K);
  EXPECT_EQ(type("q5_k_m", "blk.4.attn_qkv.weight", {64, 256}), TensorType::Q6_K);
  EXPECT_EQ(type("q4_k_s", "blk.0.attn_qkv.weight", {64, 256}), TensorType::Q4_K);
  EXPECT_EQ(type("q4_0", "output.weight", {64, 256}), TensorType::Q6_K);
  EXPECT_EQ(type("q4_0", "token_embd.weight", {64, 256}), TensorType::Q4_0);
  EXPECT_EQ(type("q8_0", "output.weight", {64, 256}), TensorType::Q8_0);
  EXPECT_EQ(type("f16", "output.weight", {64, 250}), TensorType::F16);
  EXPECT_EQ(type("q8_0", "blk.0.attn_norm.weight", {256}), TensorType::F32);
  EXPECT_EQ(type("q8_0", "blk.0.attn_q.bias", {256}), TensorType::F32);
  // The rows of SmolLM2-135M have 576 values, no multiple of 256; the published file of the model
  // has these types.
  const TypeChoice tied{.num_layers = 30, .tied_head = true};
  const auto head = choose_type(file_type("q4_1"), tied, "token_embd.weight", {49152, 576});
  EXPECT_EQ(head.type, TensorType::Q8_0);
  EXPECT_EQ(head.wanted, TensorType::Q6_K);
  EXPECT_EQ(choose_type(file_type("q4_k_m"), tied, "blk.9.attn_q.weight", {576, 576}).type,
            TensorType::Q5_0);
  EXPECT_EQ(choose_type(file_type("q8_0"), tied, "blk.9.attn_q.weight", {576, 40}).type,
            TensorType::F16);
}

}  // namespace
}  // namespace convoy::gguf
