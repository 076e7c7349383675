// SPDX-License-Identifier: Apache-2.0
//
// When the text model of a checkpoint is saved, everything else in the checkpoint stays the same,
// byte for byte.
#include "convoy/model/models/checkpoint_rest.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/models/bitsandbytes_export.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;
using testing::TemporaryFolder;

const std::string kOuter = "language_model.";
const std::string kTextConfig = "text_config";

Tensors read_tensors(const fs::path& folder) {
  Tensors found;
  const io::ModelWeights weights(io::ModelFolder::open(folder.string()));
  for (const std::string& name : weights.names())
    found[name] = device::copy_to_tensor(weights.require(name));
  return found;
}

// A checkpoint names its tensors as the hub's checkpoints do, or as the modules of transformers.
enum class Names { OfHub, OfModules };

std::string renamed(const std::string& name, Names names) {
  if (names == Names::OfHub || name == kOuter + "lm_head.weight")
    return names == Names::OfHub ? name : "lm_head.weight";
  return "model." + (name.starts_with(kOuter + "model.") ? kOuter + name.substr(21) : name);
}

class WholeCheckpoint : public ::testing::TestWithParam<std::tuple<const char*, Names>> {
 protected:
  WholeCheckpoint() {
    const fs::path golden = testing::golden_model(std::get<0>(GetParam()));
    Tensors tensors;
    for (const auto& [name, value] : read_tensors(golden)) tensors[renamed(name, names())] = value;
    const std::string tower = names() == Names::OfHub ? "" : "model.";
    tensors[tower + "vision_tower.vision_model.embeddings.weight"] =
        at::randn({2, 3}).to(at::kBFloat16);
    tensors[tower + "vision_tower.vision_model.embeddings.position_ids"] = at::arange(5);
    tensors[tower + "multi_modal_projector.mm_soft_emb_norm.weight"] = at::full({4}, 0.5);
    fs::create_directories(source());
    std::vector<io::TensorSource> sources;
    for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
    io::write_model_weights(source(), std::move(sources), 15'000);
    fs::copy_file(golden / "config.json", source() / "config.json");
    for (const char* file : {"preprocessor_config.json", "processor_config.json"})
      write_file_atomic(source() / file, R"({"image_seq_length": 4})");
    folder_ = io::ModelFolder::open(source().string());
  }

  Names names() const { return std::get<1>(GetParam()); }
  fs::path source() const { return place_ / "source"; }
  io::Json config_of(const fs::path& folder) const {
    return io::read_json_file(folder / "config.json");
  }

  static bool is_text(const std::string& name) {
    return name.find("language_model.") != std::string::npos || name == "lm_head.weight";
  }

  void expect_rest_kept(const fs::path& written) const {
    const io::ModelWeights before(*folder_), after(io::ModelFolder::open(written.string()));
    int64_t others = 0;
    for (const std::string& name : before.names()) {
      if (is_text(name)) continue;
      ++others;
      const io::TensorView& wanted = before.require(name);
      const io::TensorView* const found = after.find(name);
      ASSERT_NE(found, nullptr) << name;
      EXPECT_EQ(found->dtype, wanted.dtype) << name;
      EXPECT_EQ(found->shape, wanted.shape) << name;
      EXPECT_TRUE(std::ranges::equal(found->bytes, wanted.bytes)) << name;
    }
    EXPECT_EQ(others, 3);
  }

  TemporaryFolder place_;
  std::optional<io::ModelFolder> folder_;
};

TEST_P(WholeCheckpoint, IsWhatItWasButForTheText) {
  const auto model = load_causal_lm(*folder_, at::kFloat);
  {
    const at::NoGradGuard no_grad;
    for (const nn::NamedTensor& parameter : model->parameters()) {
      at::Tensor value = parameter.value;
      value.add_(0.25);
    }
  }
  export_model(*model, *folder_, place_ / "written", {.max_shard_bytes = 15'000});
  expect_rest_kept(place_ / "written");
  EXPECT_EQ(config_of(place_ / "written"), config_of(source()));
  for (const char* file : {"preprocessor_config.json", "processor_config.json"})
    EXPECT_EQ(read_file(place_ / "written" / file), read_file(source() / file));

  const Tensors before = read_tensors(source()), after = read_tensors(place_ / "written");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) {
    if (!is_text(name)) continue;
    EXPECT_TRUE(after.at(name).equal(value + 0.25)) << name;
  }
  const auto again =
      load_causal_lm(io::ModelFolder::open((place_ / "written").string()), at::kFloat);
  for (size_t at = 0; at < model->parameters().size(); ++at)
    EXPECT_TRUE(again->parameters()[at].value.equal(model->parameters()[at].value));
}

TEST_P(WholeCheckpoint, IsATextModelAloneByChoice) {
  const auto model = load_causal_lm(*folder_, at::kFloat);
  export_model(*model, *folder_, place_ / "text", {.extent = Extent::TextAlone});
  std::set<std::string> wanted, found;
  for (const nn::NamedTensor& parameter : model->parameters()) wanted.insert(parameter.name);
  for (const auto& [name, value] : read_tensors(place_ / "text")) found.insert(name);
  EXPECT_EQ(found, wanted);
  EXPECT_FALSE(config_of(place_ / "text").contains(kTextConfig));
  EXPECT_FALSE(fs::exists(place_ / "text/preprocessor_config.json"));
}

// The exported tensors have several types, so config.json keeps the type of the source.
TEST_P(WholeCheckpoint, HasTheTextInItsTypeAndTheRestInItsOwn) {
  const auto model = load_causal_lm(*folder_, at::kFloat);
  export_model(*model, *folder_, place_ / "half", {.dtype = at::kHalf});
  expect_rest_kept(place_ / "half");
  for (const auto& [name, value] : read_tensors(place_ / "half")) {
    if (!is_text(name)) continue;
    EXPECT_EQ(value.scalar_type(), at::kHalf) << name;
  }
  EXPECT_EQ(config_of(place_ / "half")["torch_dtype"], "float32");
}

TEST_P(WholeCheckpoint, GoesToCodesAndBack) {
  using kernels::CodeType;
  const auto quiet = [](int64_t, int64_t) {};
  for (const CodeType type : {CodeType::Nf4, CodeType::Int8}) {
    const std::string name(kernels::code_type_name(type));
    const fs::path coded = place_ / name, back = place_ / (name + "-back");
    const WeightCoding coding{
        .format = kernels::BitsandbytesFormat{.type = type, .block = 64, .nested = false},
        .skip_modules = {"model.layers.0.mlp"}};
    write_bitsandbytes_model(*folder_, coded, coding, quiet);
    expect_rest_kept(coded);
    const io::Json config = config_of(coded);
    EXPECT_EQ(config[kTextConfig], config_of(source())[kTextConfig]);
    EXPECT_EQ(config["quantization_config"]["llm_int8_skip_modules"],
              io::Json::array({"model.language_model.layers.0.mlp", "lm_head",
                               "model.multi_modal_projector", "model.vision_tower"}));
    const io::ModelFolder folder = io::ModelFolder::open(coded.string());
    const auto held = load_causal_lm(folder, at::kFloat);
    const auto encoded = load_causal_lm(*folder_, at::kFloat, at::kCPU, coding);
    for (size_t at = 0; at < held->block_linears().size(); ++at)
      EXPECT_TRUE(held->block_linears()[at]->values().equal(encoded->block_linears()[at]->values()))
          << held->block_linears()[at]->name();

    write_decoded_model(folder, back, at::kFloat, quiet);
    expect_rest_kept(back);
    EXPECT_EQ(config_of(back), config_of(source()));
    const auto decoded = load_causal_lm(io::ModelFolder::open(back.string()), at::kFloat);
    for (size_t at = 0; at < held->block_linears().size(); ++at)
      EXPECT_TRUE(decoded->block_linears()[at]->weight().equal(held->block_linears()[at]->values()))
          << held->block_linears()[at]->name();

    write_bitsandbytes_model(*folder_, place_ / (name + "-text"), coding, quiet, Extent::TextAlone);
    EXPECT_EQ(config_of(place_ / (name + "-text"))["quantization_config"]["llm_int8_skip_modules"],
              io::Json::array({"model.layers.0.mlp"}));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WholeCheckpoint,
                         ::testing::Combine(::testing::Values("gemma3-nested", "ministral3-nested"),
                                            ::testing::Values(Names::OfHub, Names::OfModules)));

// transformers ties the head again; the source's copy would be the head before training.
TEST(WholeCheckpointOfATiedHead, LeavesACopyOfTheHeadOut) {
  TemporaryFolder place;
  const fs::path golden = testing::golden_model("gemma3-nested");
  std::vector<io::TensorSource> sources;
  Tensors tensors = read_tensors(golden);
  tensors["language_model.lm_head.weight"] =
      tensors.at("language_model.model.embed_tokens.weight").clone();
  for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
  io::write_model_weights(place.path(), std::move(sources));
  fs::copy_file(golden / "config.json", place / "config.json");
  const io::ModelFolder folder = io::ModelFolder::open(place.path().string());
  const auto model = load_causal_lm(folder, at::kFloat);
  export_model(*model, folder, place / "written", {});
  const Tensors written = read_tensors(place / "written");
  EXPECT_EQ(written.size(), tensors.size() - 1);
  EXPECT_EQ(written.count("language_model.lm_head.weight"), 0U);
}

// Changes the text model and exports the checkpoint. Expects that exactly `num_others` tensors are
// unchanged, and that their names begin with `parts`.
void expect_rest_of_golden_kept(const std::string& golden, const std::vector<std::string>& parts,
                                int64_t num_others) {
  const TemporaryFolder place;
  const io::ModelFolder folder = io::ModelFolder::open(testing::golden_model(golden).string());
  const auto model = load_causal_lm(folder, at::kFloat);
  {
    const at::NoGradGuard no_grad;
    for (const nn::NamedTensor& parameter : model->parameters()) {
      at::Tensor value = parameter.value;
      value.add_(0.25);
    }
  }
  export_model(*model, folder, place / "written", {});
  const Tensors before = read_tensors(testing::golden_model(golden)),
                after = read_tensors(place / "written");
  ASSERT_EQ(after.size(), before.size());
  int64_t others = 0;
  for (const auto& [name, value] : before) {
    const bool is_other = std::ranges::any_of(
        parts, [&name](const std::string& part) { return name.starts_with(part); });
    others += is_other;
    EXPECT_TRUE(after.at(name).equal(is_other ? value : value + 0.25)) << name;
  }
  EXPECT_EQ(others, num_others);
}

// The image tower is called `visual`, and the checkpoint has a head for multi-token prediction.
TEST(WholeCheckpointOfQwen35, IsWhatItWasButForTheText) {
  expect_rest_of_golden_kept("qwen3_5-nested", {"model.visual.", "mtp."}, 2);
}

TEST(WholeCheckpointOfMuseGlimmer, IsWhatItWasButForTheText) {
  expect_rest_of_golden_kept("muse_glimmer-nested",
                             {"model.vision_adapter.", "model.vision_projection."}, 2);
}

// Layer 4 reads the keys of another layer, so its own maps of keys and values are not part of the
// text model.
TEST(WholeCheckpointOfGemma4, IsWhatItWasButForTheText) {
  expect_rest_of_golden_kept("gemma4-nested",
                             {"model.vision_tower.", "model.audio_tower.", "model.embed_vision.",
                              "model.language_model.layers.4.self_attn.k_"},
                             5);
  expect_rest_of_golden_kept("gemma4-unified-nested",
                             {"model.vision_embedder.", "model.embed_audio."}, 2);
}

TEST(WholeCheckpointOfText, IsTheTextModel) {
  const io::ModelFolder folder = io::ModelFolder::open(testing::golden_model("gemma3").string());
  EXPECT_FALSE(holds_more_than_text(folder));
  const CheckpointRest rest(folder, Extent::Whole);
  EXPECT_TRUE(rest.sources().empty());
  EXPECT_EQ(rest.saved_name("model.norm.weight"), "model.norm.weight");
}

}  // namespace
}  // namespace convoy::models
