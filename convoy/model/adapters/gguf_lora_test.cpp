// SPDX-License-Identifier: Apache-2.0
//
// Tests which LoRA files of llama.cpp are read, and which are refused and how.
// recipes/model_files/export_model_file_test.cpp compares files of llama.cpp's converter.
#include "convoy/model/adapters/gguf_lora.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/writer.h"
#include "convoy/model/adapters/adapter_file.h"
#include "convoy/model/adapters/lora_model.h"
#include "files/temporary_folder.h"

namespace convoy::adapters {
namespace {

namespace fs = std::filesystem;
using Factors = std::vector<nn::NamedTensor>;

class LoraFile : public ::testing::Test {
 protected:
  static gguf::Metadata metadata(double alpha, const std::string& architecture = "llama",
                                 const std::string& type = "adapter",
                                 const std::string& kind = "lora") {
    gguf::Metadata metadata;
    metadata.text("general.architecture", architecture);
    metadata.text("general.type", type);
    if (!kind.empty()) metadata.text("adapter.type", kind);
    metadata.real("adapter.lora.alpha", alpha);
    return metadata;
  }
  static Factors query(int64_t rows = 8) {
    return {{"blk.0.attn_q.weight.lora_a", at::arange(12, at::kFloat).view({2, 6})},
            {"blk.0.attn_q.weight.lora_b", at::arange(2 * rows, at::kFloat).view({rows, 2})}};
  }
  fs::path write(const gguf::Metadata& metadata, const Factors& factors) const {
    std::vector<gguf::TensorToWrite> tensors;
    for (const nn::NamedTensor& factor : factors)
      tensors.push_back({.name = factor.name,
                         .type = gguf::TensorType::F32,
                         .shape = factor.value.sizes().vec(),
                         .produce = [&factor](const io::ByteSink& sink) {
                           sink({static_cast<const std::byte*>(factor.value.const_data_ptr()),
                                 static_cast<size_t>(factor.value.nbytes())});
                         }});
    gguf::write_file(folder_ / "lora.gguf", metadata, tensors);
    return folder_ / "lora.gguf";
  }
  // Returns the sentence and the hint of the error that reading throws.
  std::string refusal(const gguf::Metadata& metadata, const Factors& factors) const {
    try {
      read_gguf_lora(write(metadata, factors), "llama", 4);
    } catch (const DataError& error) {
      EXPECT_FALSE(error.location().hint.empty());
      return error.sentence();
    }
    return "";
  }
  convoy::testing::TemporaryFolder folder_;
};

TEST_F(LoraFile, RowsOfQueriesAreBroughtIntoTransformersOrder) {
  const GgufLora lora = read_gguf_lora(write(metadata(6), query()), "llama", 4);
  EXPECT_EQ(lora.config.alpha, 6);
  EXPECT_EQ(lora.config.r, 2);
  EXPECT_EQ(lora.config.target_names, std::vector<std::string>{"model.layers.0.self_attn.q_proj"});
  ASSERT_EQ(lora.tensors.size(), 2u);
  EXPECT_EQ(lora.tensors[1].name, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  EXPECT_TRUE(lora.tensors[0].value.equal(query()[0].value));
  // The file stores the features of a head alternately from its first and its second half.
  EXPECT_TRUE(lora.tensors[1].value.equal(
      query()[1].value.index_select(0, at::tensor({0, 2, 1, 3, 4, 6, 5, 7}))));
  const GgufLora unpermuted = read_gguf_lora(write(metadata(6, "qwen2"), query()), "qwen2", 4);
  EXPECT_TRUE(unpermuted.tensors[1].value.equal(query()[1].value));
}

TEST_F(LoraFile, EachModuleHasTheScaleOfItsRank) {
  Factors factors = query();
  factors.push_back({"blk.1.ffn_up.weight.lora_a", at::ones({3, 6})});
  factors.push_back({"blk.1.ffn_up.weight.lora_b", at::ones({5, 3})});
  const LoraConfig with_alpha = read_gguf_lora(write(metadata(6), factors), "llama", 4).config;
  EXPECT_EQ(with_alpha.scaling_of("model.layers.0.self_attn.q_proj"), 3);
  EXPECT_EQ(with_alpha.scaling_of("model.layers.1.mlp.up_proj"), 2);
  // An alpha of 0 in the file means that no scale is applied.
  const LoraConfig without = read_gguf_lora(write(metadata(0), factors), "llama", 4).config;
  EXPECT_EQ(without.scaling_of("model.layers.0.self_attn.q_proj"), 1);
  EXPECT_EQ(without.scaling_of("model.layers.1.mlp.up_proj"), 1);
}

TEST_F(LoraFile, WhatConvoyHasNotIsRefusedByName) {
  const auto refused = [&](const gguf::Metadata& metadata, const Factors& factors,
                           const std::string& part) {
    EXPECT_NE(refusal(metadata, factors).find(part), std::string::npos)
        << refusal(metadata, factors);
  };
  const auto with = [](const std::string& name, const std::vector<int64_t>& shape) {
    Factors factors = query();
    factors.push_back({name, at::ones(shape)});
    return factors;
  };
  refused(metadata(6, "qwen2"), query(), "architecture `qwen2`, and the base is of the family");
  refused(metadata(6, "llama", "model", ""), query(), "found a file of the type `model`");
  refused(metadata(6, "llama", "adapter", "control"), query(), "type lora, found `control`");
  refused(metadata(6), with("token_embd.weight.lora_a", {8, 2}),
          "`token_embd.weight.lora_a`: LoRA on embedding or output head");
  refused(metadata(6), with("output.weight.lora_b", {13, 2}), "LoRA on embedding or output head");
  refused(metadata(6), with("blk.0.attn_norm.weight", {8}), "`blk.0.attn_norm.weight` is no part");
  refused(metadata(6), with("blk.0.ffn_up.weight.lora_a", {2, 8}), "not both there");
  refused(metadata(6), query(6), "no whole heads");
  refused(metadata(6), {}, "there are none");
  gguf::Metadata activated = metadata(6);
  activated.numbers("adapter.alora.invocation_tokens", {1, 2});
  refused(activated, query(), "an activated LoRA");
}

TEST_F(LoraFile, WhatNothingUsesIsSaid) {
  gguf::Metadata said = metadata(6);
  said.text("adapter.lora.prompt_prefix", "Classify: ");
  const std::vector<std::string> notices = gguf_lora_notices(write(said, query()));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("adapter.lora.prompt_prefix is not used"), std::string::npos);
  EXPECT_TRUE(gguf_lora_notices(write(metadata(6), query())).empty());
  EXPECT_TRUE(gguf_lora_notices(folder_.path()).empty());
}

TEST_F(LoraFile, OtherFilesAreNoAdapters) {
  write_file_atomic(folder_ / "notes.txt", "mine");
  const auto refusal_of = [&](const fs::path& path) -> std::string {
    try {
      AdapterFile::require(path);
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "";
  };
  EXPECT_NE(refusal_of(folder_ / "notes.txt").find("LoRA file in GGUF, found another file"),
            std::string::npos);
  EXPECT_EQ(refusal_of(write(metadata(6), query())), "");
  EXPECT_FALSE(brings_embeddings(folder_ / "lora.gguf"));
}

}  // namespace
}  // namespace convoy::adapters
