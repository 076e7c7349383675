// SPDX-License-Identifier: Apache-2.0
//
// Compares merged models with the sum in fp32, rounded once, and with the models that PEFT merges
// (tests/golden/adapters).
#include "convoy/apps/recipes/model_files/merge_adapter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/base/error.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using io::Json;
using testing::golden_folder;
using testing::read_tensors;
using testing::Tensors;

const std::string kQuery = "model.layers.0.self_attn.q_proj.weight";
const std::string kNorm = "model.norm.weight";

class Merge : public ::testing::Test {
 protected:
  Merge() { testing::make_model(model()); }

  fs::path model() const { return folder_ / "model"; }
  fs::path merged() const { return folder_ / "merged"; }
  fs::path adapter(const std::string& name = "lora") const {
    return golden_folder() / "train/qwen2" / name;
  }

  Tensors base() const { return read_tensors(model() / "model.safetensors"); }
  void store_base(const Tensors& tensors) const {
    testing::write_tensors(model() / "model.safetensors", tensors);
  }
  void store_base_as(at::ScalarType dtype) const {
    Tensors tensors = read_tensors(golden_folder() / "train/qwen2/model.safetensors");
    for (auto& [name, value] : tensors) value = value.to(dtype);
    store_base(tensors);
  }
  void set_config(const std::string& key, const Json& value) const {
    Json config = io::read_json_file(model() / "config.json");
    config[key] = value;
    write_file_atomic(model() / "config.json", config.dump());
  }

  Tensors merge(const std::string& dtype = "auto", const fs::path& with = {}) const {
    fs::remove_all(merged());
    settings::ModelSourceFlags source;
    source.model = model().string();
    source.adapter = (with.empty() ? adapter() : with).string();
    settings::MergeFlags flags;
    flags.output = merged().string();
    flags.dtype = dtype;
    merge_adapter(source, flags, {}, Log(LogLevel::Quiet));
    return read_tensors(merged() / "model.safetensors");
  }
  Json merged_config() const { return io::read_json_file(merged() / "config.json"); }
  std::string recorded_dtype() const {
    return io::read_json_file(merged() / "convoy_merge.json").at("dtype");
  }

  convoy::testing::TemporaryFolder folder_;
};

// Adds the adapter `lora` to the queries' weight: rank 2, alpha 7.
at::Tensor summed_query(const Tensors& base, const fs::path& adapter) {
  const Tensors leaves = read_tensors(adapter / "adapter_model.safetensors");
  const std::string module = "base_model.model.model.layers.0.self_attn.q_proj";
  return at::addmm(base.at(kQuery).to(at::kFloat), leaves.at(module + ".lora_B.weight"),
                   leaves.at(module + ".lora_A.weight"), 1.0, 7.0 / 2);
}

TEST_F(Merge, TheTemplateIsThatOfTheAdapter) {
  const fs::path copy = folder_ / "adapter";
  fs::copy(adapter(), copy);
  merge("auto", copy);
  EXPECT_EQ(read_file(merged() / "chat_template.jinja"),
            read_file(model() / "chat_template.jinja"));
  write_file_atomic(copy / "chat_template.jinja", "{{ messages[0].content }}");
  merge("auto", copy);
  EXPECT_EQ(read_file(merged() / "chat_template.jinja"), "{{ messages[0].content }}");
}

TEST_F(Merge, SaysOnceWhatTheTokenizerCannotSpell) {
  Json tokenizer = io::read_json_file(model() / "tokenizer.json");
  tokenizer["model"]["vocab"].erase("\u0100");  // the token of the byte 0
  write_file_atomic(model() / "tokenizer.json", tokenizer.dump());
  settings::ModelSourceFlags source;
  source.model = model().string();
  source.adapter = adapter().string();
  settings::MergeFlags flags;
  flags.output = merged().string();
  ::testing::internal::CaptureStderr();
  merge_adapter(source, flags, {}, Log());
  const std::string said = ::testing::internal::GetCapturedStderr();
  const size_t first = said.find("U+0000");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("U+0000", first + 1), std::string::npos) << said;
}

TEST_F(Merge, TextsEndAsThoseOfTheAdapter) {
  const fs::path copy = folder_ / "adapter";
  fs::copy(adapter(), copy);
  write_file_atomic(copy / "generation_config.json", R"({"eos_token_id": [1, 2]})");
  merge("auto", copy);
  EXPECT_EQ(io::read_json_file(merged() / "generation_config.json").at("eos_token_id"),
            (Json{1, 2}));
  // TRL saves the tokenizer into the adapter's folder.
  fs::remove(copy / "generation_config.json");
  write_file_atomic(copy / "tokenizer_config.json", R"({"eos_token": "<|start|>"})");
  merge("auto", copy);
  EXPECT_EQ(io::read_json_file(merged() / "generation_config.json").at("eos_token_id"),
            (Json{1, 2}));
}

TEST_F(Merge, KeepsTheTypeOfTheBaseAndRoundsTheSumOnce) {
  for (const auto& [dtype, name, transformers_name] :
       {std::tuple{at::kHalf, "fp16", "float16"}, std::tuple{at::kBFloat16, "bf16", "bfloat16"},
        std::tuple{at::kFloat, "fp32", "float32"}}) {
    store_base_as(dtype);
    const Tensors stored = base();
    const Tensors found = merge();
    ASSERT_EQ(found.size(), stored.size());
    for (const auto& [tensor, value] : found) {
      EXPECT_EQ(value.scalar_type(), dtype) << tensor;
      if (tensor.ends_with("_proj.weight")) continue;
      EXPECT_TRUE(value.equal(stored.at(tensor))) << tensor;
    }
    EXPECT_TRUE(found.at(kQuery).equal(summed_query(stored, adapter()).to(dtype))) << name;
    EXPECT_EQ(merged_config().at("dtype"), transformers_name);
    EXPECT_EQ(recorded_dtype(), name);
  }
}

TEST_F(Merge, EachWeightOfAMixedBaseKeepsItsOwnType) {
  Tensors stored = base();
  for (auto& [name, value] : stored)
    value = value.to(name.find("layers.0") != std::string::npos ? at::kHalf
                     : name.find("norm") != std::string::npos   ? at::kFloat
                                                                : at::kBFloat16);
  store_base(stored);
  set_config("dtype", "bfloat16");
  const Tensors found = merge();
  for (const auto& [name, value] : stored)
    EXPECT_EQ(found.at(name).scalar_type(), value.scalar_type()) << name;
  EXPECT_TRUE(found.at(kQuery).equal(summed_query(stored, adapter()).to(at::kHalf)));
  EXPECT_EQ(merged_config().at("dtype"), "bfloat16");
  EXPECT_EQ(recorded_dtype(), "mixed");
}

TEST_F(Merge, DtypeConvertsEveryWeightAndTheConfigFollows) {
  store_base_as(at::kHalf);
  set_config("dtype", nullptr);
  const at::Tensor sum = summed_query(base(), adapter());
  for (const auto& [flag, dtype, transformers_name] :
       {std::tuple{"fp32", at::kFloat, "float32"}, std::tuple{"bf16", at::kBFloat16, "bfloat16"},
        std::tuple{"fp16", at::kHalf, "float16"}}) {
    const Tensors found = merge(flag);
    for (const auto& [name, value] : found) EXPECT_EQ(value.scalar_type(), dtype) << name;
    EXPECT_TRUE(found.at(kQuery).equal(sum.to(dtype))) << flag;
    EXPECT_EQ(merged_config().at("dtype"), transformers_name);
    EXPECT_EQ(recorded_dtype(), flag);
  }
}

// If the fp32 sum lies halfway between two numbers of the dtype, its last bit decides.
TEST_F(Merge, IsWhatPeftMerges) {
  for (const auto& [dtype, name, places] :
       {std::tuple{at::kHalf, "fp16", 11}, std::tuple{at::kBFloat16, "bf16", 8}}) {
    store_base_as(dtype);
    for (const std::string kind : {"lora", "dora"}) {
      const Tensors found = merge("auto", adapter(kind));
      const Tensors wanted = read_tensors(golden_folder() / "adapters" /
                                          fmt::format("merged_{}_{}.safetensors", kind, name));
      ASSERT_EQ(wanted.size(), 14U);
      int64_t equal = 0, count = 0;
      for (const auto& [tensor, value] : wanted) {
        ASSERT_EQ(found.at(tensor).scalar_type(), dtype);
        const at::Tensor wide = value.to(at::kFloat);
        const at::Tensor difference = (found.at(tensor).to(at::kFloat) - wide).abs();
        const double last_place = std::ldexp(1.0, 1 - places);
        EXPECT_TRUE(difference.le(wide.abs() * last_place + 1e-6).all().item<bool>()) << tensor;
        equal += difference.eq(0).sum().item<int64_t>();
        count += difference.numel();
      }
      RecordProperty(
          fmt::format("share_of_equal_bits_{}_{}", kind, name),
          fmt::format("{:.4f}", static_cast<double>(equal) / static_cast<double>(count)));
      EXPECT_GT(equal, count * 999 / 1000) << kind << " " << name;
    }
  }
}

TEST_F(Merge, ASumBeyondFp16IsRefusedBeforeAnythingIsWritten) {
  Tensors leaves = read_tensors(adapter() / "adapter_model.safetensors");
  for (auto& [name, value] : leaves) value = value * 1000;
  const fs::path large = folder_ / "large";
  fs::create_directories(large);
  fs::copy_file(adapter() / "adapter_config.json", large / "adapter_config.json");
  testing::write_tensors(large / "adapter_model.safetensors", leaves);
  EXPECT_TRUE(merge("auto", large).at(kQuery).isfinite().all().item<bool>());
  store_base_as(at::kHalf);
  for (const char* dtype : {"auto", "fp16"}) {
    fs::remove_all(merged());
    try {
      merge(dtype, large);
      ADD_FAILURE() << "infinite weights were written";
    } catch (const NumericError& error) {
      EXPECT_NE(error.sentence().find("_proj.weight"), std::string::npos) << error.sentence();
      EXPECT_NE(error.sentence().find("fp16"), std::string::npos) << error.sentence();
    }
    EXPECT_FALSE(fs::exists(merged()));
  }
  EXPECT_TRUE(merge("bf16", large).at(kQuery).isfinite().all().item<bool>());
}

TEST_F(Merge, WeightsThatWereInfiniteBeforeStayAsTheyAre) {
  Tensors stored = base();
  stored.at(kNorm)[0] = INFINITY;
  for (auto& [name, value] : stored) value = value.to(at::kHalf);
  store_base(stored);
  EXPECT_TRUE(merge().at(kNorm).equal(stored.at(kNorm)));
}

TEST_F(Merge, WhatIsMissingIsAskedFor) {
  settings::ModelSourceFlags source;
  source.model = model().string();
  settings::MergeFlags flags;
  const Log quiet(LogLevel::Quiet);
  EXPECT_THROW(merge_adapter(source, flags, {}, quiet), ConfigError);
  source.adapter = adapter().string();
  EXPECT_THROW(merge_adapter(source, flags, {}, quiet), ConfigError);
  flags.output = model().string();  // the folder is not empty
  EXPECT_THROW(merge_adapter(source, flags, {}, quiet), ConfigError);
}

}  // namespace
}  // namespace convoy::recipes
