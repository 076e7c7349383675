// SPDX-License-Identifier: Apache-2.0
//
// Tests adapters of the text part of a larger model. Their names are as PEFT 0.20 writes them for
// Gemma3ForConditionalGeneration of transformers 5.24: "base_model.model." and the module's name.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/adapters/decoder_test.h"
#include "convoy/model/adapters/lora_model.h"
#include "files/temporary_folder.h"

namespace convoy::adapters {
namespace {

using convoy::testing::TemporaryFolder;
using testing::logits_of;
using testing::tiny_decoder;

using NamedTensors = std::map<std::string, at::Tensor>;

std::unique_ptr<nn::Decoder> nested_decoder(bool tied_head = false) {
  return tiny_decoder(tied_head, "model.language_model");
}

LoraConfig config_of(std::vector<std::string> targets) {
  LoraConfig config;
  config.r = 3;
  config.alpha = 6;
  config.all_linear = false;
  config.target_names = std::move(targets);
  return config;
}

// Imitates training: afterwards no parameter has its initial value.
void train_a_little(const LoraModel& lora) {
  const at::NoGradGuard no_grad;
  at::manual_seed(11);
  for (const nn::NamedTensor& parameter : lora.parameters()) {
    at::Tensor value = parameter.value;
    value.add_(at::randn(value.sizes()) * 0.2);
  }
}

std::string renamed(std::string name, const std::string& from, const std::string& to) {
  if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

class NestedAdapter : public ::testing::Test {
 protected:
  // Saves an adapter of `model`, and returns the logits of the model with this adapter.
  at::Tensor save(nn::CausalLm& model, LoraConfig config) const {
    const LoraModel lora = LoraModel::create(model, std::move(config), 1);
    train_a_little(lora);
    lora.save(folder_.path(), "base");
    return logits_of(model);
  }
  NamedTensors tensors() const {
    NamedTensors found;
    const io::SafetensorsFile file(folder_ / "adapter_model.safetensors");
    for (const io::TensorView& view : file.tensors())
      found[view.name] = device::copy_to_tensor(view);
    return found;
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& [name, value] : tensors()) found.insert(name);
    return found;
  }
  void write(const NamedTensors& tensors) const {
    std::vector<io::TensorSource> sources;
    for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
    io::write_safetensors(folder_ / "adapter_model.safetensors", std::move(sources));
  }
  io::Json config() const { return io::read_json_file(folder_ / "adapter_config.json"); }
  void set(const std::string& key, const io::Json& value) const {
    io::Json json = config();
    json[key] = value;
    write_file_atomic(folder_ / "adapter_config.json", json.dump());
  }
  LoraConfig read_config() const {
    return LoraConfig::from_peft_json(io::JsonReader(config(), "adapter_config.json"));
  }
  std::string refusal() const {
    try {
      LoraModel::load(*nested_decoder(), folder_.path());
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST(NamesInTheWhole, HoldTheMapOfInputsByLayer) {
  const ModuleNames names = names_in_whole("model.language_model");
  EXPECT_TRUE(names.hold("model.language_model.per_layer_model_projection.lora_A.weight"));
  EXPECT_FALSE(names.hold("model.vision_tower.per_layer_model_projection.lora_A.weight"));
}

TEST_F(NestedAdapter, IsNamedAsPeftNamesItOnTheWholeModel) {
  LoraConfig config = config_of({"q_proj", "down_proj"});
  config.modules_to_save = {"embed_tokens", "lm_head"};
  save(*nested_decoder(), config);
  EXPECT_EQ(names(),
            (std::set<std::string>{
                "base_model.model.lm_head.weight",
                "base_model.model.model.language_model.embed_tokens.weight",
                "base_model.model.model.language_model.layers.0.mlp.down_proj.lora_A.weight",
                "base_model.model.model.language_model.layers.0.mlp.down_proj.lora_B.weight",
                "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight",
                "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_B.weight",
                "base_model.model.model.language_model.layers.1.mlp.down_proj.lora_A.weight",
                "base_model.model.model.language_model.layers.1.mlp.down_proj.lora_B.weight",
                "base_model.model.model.language_model.layers.1.self_attn.q_proj.lora_A.weight",
                "base_model.model.model.language_model.layers.1.self_attn.q_proj.lora_B.weight",
            }));
  const io::Json written = this->config();
  EXPECT_EQ(written.at("target_modules").get<std::set<std::string>>(),
            (std::set<std::string>{
                "model.language_model.layers.0.mlp.down_proj",
                "model.language_model.layers.0.self_attn.q_proj",
                "model.language_model.layers.1.mlp.down_proj",
                "model.language_model.layers.1.self_attn.q_proj",
            }));
  EXPECT_EQ(written.at("modules_to_save").get<std::set<std::string>>(),
            (std::set<std::string>{"lm_head", "model.language_model.embed_tokens"}));
  EXPECT_EQ(written.at("base_model_name_or_path"), "base");
}

// By PEFT's rule, LoraConfig also names modules outside the text model: image towers have modules
// with these names.
TEST_F(NestedAdapter, MeansNoModuleOfTheRestOfTheModel) {
  for (const bool by_pattern : {false, true}) {
    LoraConfig config = config_of({"q_proj", "down_proj"});
    config.modules_to_save = {"norm"};
    if (by_pattern) {
      config.target_names.clear();
      config.target_pattern = R"(.*\.(q_proj|down_proj))";
    }
    save(*nested_decoder(), config);
    const LoraConfig written = read_config();
    EXPECT_TRUE(written.targets("model.language_model.layers.1.self_attn.q_proj"));
    EXPECT_TRUE(written.saves_whole("model.language_model.norm"));
    for (const char* other : {"model.vision_tower.vision_model.encoder.layers.1.self_attn.q_proj",
                              "model.vision_tower.transformer.layers.0.feed_forward.down_proj",
                              "model.multi_modal_projector.mm_soft_emb_norm"}) {
      EXPECT_FALSE(written.targets(other)) << other;
      EXPECT_FALSE(written.saves_whole(other)) << other;
    }
  }
}

TEST_F(NestedAdapter, StartsAsThatOfTheTextModelAlone) {
  const auto alone = tiny_decoder(), nested = nested_decoder();
  const LoraModel wanted = LoraModel::create(*alone, config_of({"q_proj"}), 5);
  const LoraModel found = LoraModel::create(*nested, config_of({"q_proj"}), 5);
  ASSERT_EQ(found.parameters().size(), wanted.parameters().size());
  for (size_t at = 0; at < wanted.parameters().size(); ++at)
    EXPECT_TRUE(found.parameters()[at].value.equal(wanted.parameters()[at].value));
}

TEST_F(NestedAdapter, LoadsToTheSameBitsInTheWholeModelAndInTheTextModelAlone) {
  LoraConfig config = config_of({"q_proj", "up_proj", "o_proj"});
  config.use_dora = true;
  config.rank_pattern = {{"layers.1.mlp.up_proj", 2}};
  config.alpha_pattern = {{"o_proj", 9}};
  config.exclude_names = {"layers.0.self_attn.o_proj"};
  config.modules_to_save = {"lm_head"};
  const at::Tensor wanted = save(*nested_decoder(), config);
  EXPECT_FALSE(wanted.equal(logits_of(*nested_decoder())));
  const NamedTensors saved = tensors();

  const auto nested = nested_decoder();
  const LoraModel again = LoraModel::load(*nested, folder_.path());
  EXPECT_TRUE(again.unmatched().empty());
  EXPECT_TRUE(logits_of(*nested).equal(wanted));
  ASSERT_EQ(again.parameters().size(), saved.size());
  for (const nn::NamedTensor& parameter : again.parameters())
    EXPECT_TRUE(parameter.value.equal(saved.at(parameter.name))) << parameter.name;

  const auto alone = tiny_decoder();
  const LoraModel of_text = LoraModel::load(*alone, folder_.path());
  EXPECT_TRUE(logits_of(*alone).equal(wanted));
  of_text.save(folder_.path(), "text");  // trained on with the text model alone
  EXPECT_EQ(names().count("base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"), 1U);
  const auto last = tiny_decoder();
  LoraModel::load(*last, folder_.path());
  EXPECT_TRUE(logits_of(*last).equal(wanted));
}

TEST_F(NestedAdapter, LayersAreThoseOfTheText) {
  LoraConfig config = config_of({"q_proj"});
  config.layers_to_transform = {1};
  const at::Tensor wanted = save(*nested_decoder(), config);
  EXPECT_EQ(this->config().at("target_modules"),
            io::Json::array({"model.language_model.layers.1.self_attn.q_proj"}));
  const auto nested = nested_decoder();
  LoraModel::load(*nested, folder_.path());
  EXPECT_TRUE(logits_of(*nested).equal(wanted));
}

// Earlier versions of Convoy saved the names of the text model, as GGUF files have them.
TEST_F(NestedAdapter, NamesOfTheTextModelAloneAreRead) {
  LoraConfig config = config_of({"q_proj", "model.layers.1.mlp.up_proj"});
  config.rank_pattern = {{"model.layers.1.mlp.up_proj", 2}};
  config.modules_to_save = {"model.norm"};
  const at::Tensor wanted = save(*tiny_decoder(), config);
  ASSERT_EQ(names().count("base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"), 1U);

  const auto nested = nested_decoder();
  const LoraModel lora = LoraModel::load(*nested, folder_.path());
  EXPECT_TRUE(logits_of(*nested).equal(wanted));
  lora.save(folder_.path(), "base");  // trained on with the whole model
  EXPECT_EQ(
      names().count("base_model.model.model.language_model.layers.1.mlp.up_proj.lora_A.weight"),
      1U);
  EXPECT_EQ(this->config().at("rank_pattern"),
            io::Json::object({{"model.language_model.layers.1.mlp.up_proj", 2}}));
  const auto again = nested_decoder();
  LoraModel::load(*again, folder_.path());
  EXPECT_TRUE(logits_of(*again).equal(wanted));
}

TEST_F(NestedAdapter, NamesOfOlderTransformersAreRead) {
  LoraConfig config = config_of({"q_proj"});
  config.modules_to_save = {"lm_head"};
  const at::Tensor wanted = save(*nested_decoder(), config);
  NamedTensors older;
  for (const auto& [name, value] : tensors())
    older[renamed(renamed(name, "model.model.language_model.", "model.language_model.model."),
                  "model.lm_head", "model.language_model.lm_head")] = value;
  ASSERT_TRUE(older.contains("base_model.model.language_model.lm_head.weight"));
  ASSERT_TRUE(older.contains(
      "base_model.model.language_model.model.layers.0.self_attn.q_proj.lora_A.weight"));
  write(older);
  set("target_modules", R"(language_model\.model\..*\.q_proj)");
  set("modules_to_save", {"lm_head"});
  const auto nested = nested_decoder();
  LoraModel::load(*nested, folder_.path());
  EXPECT_TRUE(logits_of(*nested).equal(wanted));
}

TEST_F(NestedAdapter, APatternOfPeftOverTheWholeModelIsRead) {
  const at::Tensor wanted = save(*nested_decoder(), config_of({"q_proj", "v_proj"}));
  set("target_modules", R"(.*language_model\..*\.(q_proj|v_proj))");
  set("exclude_modules", R"(.*(vision_tower|multi_modal_projector).*)");
  const auto nested = nested_decoder();
  const LoraModel lora = LoraModel::load(*nested, folder_.path());
  EXPECT_TRUE(logits_of(*nested).equal(wanted));
  EXPECT_TRUE(lora.unmatched().empty()) << lora.unmatched().front().pattern;
}

TEST_F(NestedAdapter, ATiedEmbeddingBesideTheAdapterIsRead) {
  save(*nested_decoder(/*tied_head=*/true), config_of({"q_proj"}));
  NamedTensors brought = tensors();
  const at::Tensor embedding = at::randn({13, 8});
  brought["base_model.model.model.language_model.embed_tokens.weight"] = embedding;
  brought["base_model.model.lm_head.weight"] = embedding.clone();
  write(brought);
  EXPECT_TRUE(brings_embeddings(folder_.path()));
  const auto nested = nested_decoder(/*tied_head=*/true);
  EXPECT_TRUE(LoraModel::load(*nested, folder_.path()).brings_embeddings());
  EXPECT_TRUE(nested->head().weight().equal(embedding));
}

TEST_F(NestedAdapter, WhatChangesOtherPartsIsRefusedByTheirNames) {
  save(*nested_decoder(), config_of({"q_proj"}));
  const NamedTensors text = tensors();
  const std::string tower =
      "base_model.model.model.vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.lora_";
  NamedTensors both = text;
  NamedTensors tower_alone;
  for (const char* factor : {"A.weight", "B.weight"})
    both[tower + factor] = tower_alone[tower + factor] = at::ones({3, 3});
  set("target_modules", {"q_proj"});
  for (const NamedTensors& tensors : {both, tower_alone}) {
    write(tensors);
    const std::string said = refusal();
    EXPECT_NE(said.find(tower + "A.weight"), std::string::npos) << said;
    EXPECT_NE(said.find("2 of its " + std::to_string(tensors.size())), std::string::npos) << said;
    EXPECT_EQ(said.find("another base model"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace convoy::adapters
