// SPDX-License-Identifier: Apache-2.0
//
// Tests multimodal checkpoints whose text model has an adapter of PEFT: merged, quantised and for
// llama.cpp, they equal the text model alone.
#include <gtest/gtest.h>

#include <set>

#include "convoy/apps/recipes/model_files/export_model_file.h"
#include "convoy/apps/recipes/model_files/merge_adapter.h"
#include "convoy/apps/recipes/model_files/quantize_weights.h"
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

const std::string kOuter = "language_model.";
const std::string kOwnPrefix = "base_model.model.model.";
const std::string kWholePrefix = "base_model.model.model.language_model.";

class NestedModel : public ::testing::Test {
 protected:
  NestedModel() {
    testing::make_nested_model(whole());
    fs::create_directories(text());
    for (const fs::path& source :
         {golden_folder() / "train/tokenizer", golden_folder() / "train/gemma3"})
      for (const fs::directory_entry& entry : fs::directory_iterator(source))
        if (entry.is_regular_file()) fs::copy_file(entry.path(), text() / entry.path().filename());
    // PEFT saves the adapter under these names when the text model is a part of the whole model.
    fs::create_directories(adapter());
    Tensors leaves;
    for (const auto& [name, value] : read_tensors(text_adapter() / "adapter_model.safetensors"))
      leaves[kWholePrefix + name.substr(kOwnPrefix.size())] = value;
    testing::write_tensors(adapter() / "adapter_model.safetensors", leaves);
    Json config = io::read_json_file(text_adapter() / "adapter_config.json");
    config["target_modules"] =
        R"(.*language_model\..*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj))";
    write_file_atomic(adapter() / "adapter_config.json", config.dump());
  }

  fs::path whole() const { return folder_ / "whole"; }
  fs::path text() const { return folder_ / "text"; }
  fs::path adapter() const { return folder_ / "adapter"; }
  static fs::path text_adapter() { return golden_folder() / "train/gemma3/lora"; }

  fs::path merge(const fs::path& model, const fs::path& with, const std::string& name,
                 bool text_only = false) const {
    settings::ModelSourceFlags source;
    source.model = model.string();
    source.adapter = with.string();
    settings::MergeFlags flags;
    flags.output = (folder_ / name).string();
    flags.text_only = text_only;
    merge_adapter(source, flags, {}, Log(LogLevel::Quiet));
    return flags.output;
  }

  void expect_rest_kept(const Tensors& found) const {
    int64_t others = 0;
    for (const auto& [name, value] : read_tensors(whole() / "model.safetensors")) {
      if (name.starts_with(kOuter)) continue;
      ++others;
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_EQ(found.at(name).scalar_type(), value.scalar_type()) << name;
      EXPECT_TRUE(found.at(name).equal(value)) << name;
    }
    EXPECT_EQ(others, 2);
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(NestedModel, IsMergedWholeOrAloneByChoice) {
  const Tensors wanted =
      read_tensors(merge(text(), text_adapter(), "wanted") / "model.safetensors");
  const Tensors base = read_tensors(text() / "model.safetensors");
  const std::string query = "model.layers.0.self_attn.q_proj.weight";
  EXPECT_FALSE(wanted.at(query).equal(base.at(query)));

  const fs::path merged = merge(whole(), adapter(), "merged");
  const Tensors found = read_tensors(merged / "model.safetensors");
  expect_rest_kept(found);
  EXPECT_EQ(found.size(), wanted.size() + 2);
  for (const auto& [name, value] : wanted)
    EXPECT_TRUE(found.at(kOuter + name).equal(value)) << name;
  EXPECT_EQ(io::read_json_file(merged / "config.json"),
            io::read_json_file(whole() / "config.json"));
  EXPECT_EQ(read_file(merged / "preprocessor_config.json"),
            read_file(whole() / "preprocessor_config.json"));

  const fs::path alone = merge(whole(), adapter(), "alone", /*text_only=*/true);
  const Tensors text_tensors = read_tensors(alone / "model.safetensors");
  ASSERT_EQ(text_tensors.size(), wanted.size());
  for (const auto& [name, value] : wanted) EXPECT_TRUE(text_tensors.at(name).equal(value)) << name;
  EXPECT_EQ(io::read_json_file(alone / "config.json")["model_type"], "gemma3_text");
}

TEST_F(NestedModel, AnAdapterWithTheTextModelsNamesMergesToTheSame) {
  const Tensors wanted = read_tensors(merge(whole(), adapter(), "wanted") / "model.safetensors");
  const Tensors found = read_tensors(merge(whole(), text_adapter(), "found") / "model.safetensors");
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, value] : wanted) EXPECT_TRUE(found.at(name).equal(value)) << name;
}

TEST_F(NestedModel, IsQuantizedWholeOrAloneByChoice) {
  settings::QuantizeFlags flags;
  flags.model = whole().string();
  flags.output = (folder_ / "codes").string();
  quantize_weights(flags, Log(LogLevel::Quiet));
  const Tensors codes = read_tensors(folder_ / "codes/model.safetensors");
  expect_rest_kept(codes);
  EXPECT_TRUE(codes.contains("language_model.model.layers.0.self_attn.q_proj.weight.absmax"));

  flags.output = (folder_ / "alone").string();
  flags.text_only = true;
  quantize_weights(flags, Log(LogLevel::Quiet));
  for (const auto& [name, value] : read_tensors(folder_ / "alone/model.safetensors"))
    EXPECT_TRUE(name.starts_with("model.")) << name;

  flags = {};
  flags.tensors = (whole() / "model.safetensors").string();
  flags.output = (folder_ / "file.safetensors").string();
  flags.text_only = true;
  EXPECT_THROW(quantize_weights(flags, Log(LogLevel::Quiet)), ConfigError);
}

// Converts PEFT's names to llama.cpp's names, and back.
TEST_F(NestedModel, AnAdapterAloneIsALoraFile) {
  Json base = io::read_json_file(whole() / "config.json");
  base["text_config"]["query_pre_attn_scalar"] = 10;  // as llama.cpp computes it
  write_file_atomic(whole() / "config.json", base.dump());
  settings::ModelExportFlags flags;
  flags.model = whole().string();
  flags.adapter = adapter().string();
  flags.adapter_only = true;
  flags.type = "f32";
  flags.output = (folder_ / "adapter.gguf").string();
  export_model_file(flags, Log(LogLevel::Quiet));
  const fs::path back = folder_ / "back";
  convert_model_file(flags.output, back.string(), {.base = whole().string()}, Log(LogLevel::Quiet));
  std::set<std::string> wanted, found;
  for (const auto& [name, value] : read_tensors(adapter() / "adapter_model.safetensors"))
    wanted.insert(name);
  for (const auto& [name, value] : read_tensors(back / "adapter_model.safetensors"))
    found.insert(name);
  EXPECT_EQ(found, wanted);
  const Json config = io::read_json_file(back / "adapter_config.json");
  for (const auto& module : config.at("target_modules"))
    EXPECT_TRUE(module.get<std::string>().starts_with("model.language_model.layers.")) << module;
  const Tensors merged = read_tensors(merge(whole(), adapter(), "merged") / "model.safetensors");
  const Tensors again = read_tensors(merge(whole(), back, "again") / "model.safetensors");
  for (const auto& [name, value] : merged)
    EXPECT_TRUE(at::allclose(again.at(name), value, 1e-5, 1e-6)) << name;
}

}  // namespace
}  // namespace convoy::recipes
