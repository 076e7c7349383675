// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/lora_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/adapters/decoder_test.h"
#include "files/temporary_folder.h"

namespace convoy::adapters {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;
using testing::linear_of;
using testing::logits_of;
using testing::tiny_decoder;

using NamedTensors = std::map<std::string, at::Tensor>;

LoraConfig small_config() {
  settings::LoraSettings settings;
  settings.r = 3;
  settings.alpha = 6;
  settings.dropout = 0.5;
  return LoraConfig::from_settings(settings);
}

NamedTensors copies(const std::vector<nn::NamedTensor>& tensors) {
  NamedTensors all;
  for (const nn::NamedTensor& tensor : tensors) all[tensor.name] = tensor.value.detach().clone();
  return all;
}

void expect_equal(const NamedTensors& found, const NamedTensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(found.at(name).equal(value)) << name;
  }
}

// Imitates training: afterwards no parameter has its initial value.
void stir(const LoraModel& lora) {
  const at::NoGradGuard no_grad;
  at::manual_seed(11);
  for (const nn::NamedTensor& parameter : lora.parameters()) {
    at::Tensor value = parameter.value;
    value.add_(at::randn(value.sizes()) * 0.2);
  }
}

TEST(Attach, TrainsTheAdapterAndModulesSavedWholeAlone) {
  const auto model = tiny_decoder();
  LoraConfig config = small_config();
  config.all_linear = false;
  config.target_names = {"q_proj", "down_proj"};
  config.modules_to_save = {"embed_tokens", "layers.1.input_layernorm"};
  const LoraModel lora = LoraModel::create(*model, config, 1);

  std::set<std::string> wanted = {"base_model.model.model.embed_tokens.weight",
                                  "base_model.model.model.layers.1.input_layernorm.weight"};
  for (const char* module : {"layers.0.self_attn.q_proj", "layers.0.mlp.down_proj",
                             "layers.1.self_attn.q_proj", "layers.1.mlp.down_proj"})
    for (const char* leaf : {"lora_A", "lora_B"})
      wanted.insert(fmt::format("base_model.model.model.{}.{}.weight", module, leaf));
  std::set<std::string> found;
  for (const nn::NamedTensor& parameter : lora.parameters()) {
    found.insert(parameter.name);
    EXPECT_TRUE(parameter.value.requires_grad()) << parameter.name;
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(lora.num_adapted(), 4);
  for (const nn::NamedTensor& parameter : model->parameters())
    EXPECT_EQ(parameter.value.requires_grad(),
              parameter.name == "model.embed_tokens.weight" ||
                  parameter.name == "model.layers.1.input_layernorm.weight")
        << parameter.name;
}

TEST(Attach, ChangesNothingAtTheStart) {
  for (const bool dora : {false, true}) {
    const auto model = tiny_decoder();
    const at::Tensor before = logits_of(*model);
    LoraConfig config = small_config();
    config.use_dora = dora;
    LoraModel lora = LoraModel::create(*model, config, 1);
    EXPECT_LT((logits_of(*model) - before).abs().max().item<float>(), 1e-6) << "dora " << dora;
  }
}

TEST(Attach, TheStartOfAModuleFollowsFromSeedAndNameAlone) {
  const auto start = [](uint64_t seed, const std::vector<std::string>& targets) {
    const auto model = tiny_decoder();
    LoraConfig config = small_config();
    config.all_linear = false;
    config.target_names = targets;
    return copies(LoraModel::create(*model, config, seed).parameters());
  };
  const std::string name = "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight";
  const at::Tensor wanted = start(5, {"up_proj"}).at(name);
  EXPECT_TRUE(start(5, {"q_proj", "up_proj", "o_proj"}).at(name).equal(wanted));
  EXPECT_FALSE(start(6, {"up_proj"}).at(name).equal(wanted));
  EXPECT_LE(wanted.abs().max().item<float>(), 1 / std::sqrt(8.F));
}

TEST(Attach, EachModuleHasItsRankAndScale) {
  for (const bool rslora : {false, true}) {
    const auto model = tiny_decoder();
    LoraConfig config = small_config();
    config.dropout = 0;
    config.use_rslora = rslora;
    config.rank_pattern = {{"layers.0.self_attn.k_proj", 2}};
    config.alpha_pattern = {{"k_proj", 5}};
    const LoraModel lora = LoraModel::create(*model, config, 1);
    stir(lora);
    const NamedTensors values = copies(lora.parameters());
    for (const auto& [layer, rank] : {std::pair{0, 2}, std::pair{1, 3}}) {
      const std::string module = fmt::format("model.layers.{}.self_attn.k_proj", layer);
      const at::Tensor& a = values.at("base_model.model." + module + ".lora_A.weight");
      const at::Tensor& b = values.at("base_model.model." + module + ".lora_B.weight");
      EXPECT_EQ(a.size(0), rank);
      const double scale = 5 / (rslora ? std::sqrt(rank) : rank);
      const at::NoGradGuard no_grad;
      const nn::Linear& linear = linear_of(*model, module);
      const at::Tensor x = at::randn({4, linear.in_features()});
      const at::Tensor wanted = at::matmul(x, (linear.weight() + scale * at::mm(b, a)).t());
      EXPECT_TRUE(at::allclose(linear.forward(x), wanted, 1e-5, 1e-5)) << module;
    }
  }
}

TEST(Attach, NamesThatNothingAnswersToAreRefused) {
  const auto refusal = [](LoraConfig config) {
    const auto model = tiny_decoder();
    try {
      LoraModel::create(*model, std::move(config), 1);
    } catch (const ConfigError& error) {
      return error.location().key + ": " + error.sentence();
    }
    return std::string();
  };
  LoraConfig misspelt = small_config();
  misspelt.all_linear = false;
  misspelt.target_names = {"q_porj"};
  EXPECT_NE(refusal(misspelt).find("did you mean `q_proj`"), std::string::npos);
  EXPECT_TRUE(refusal(misspelt).starts_with("target_modules"));

  LoraConfig unknown_module = small_config();
  unknown_module.modules_to_save = {"classifier"};
  EXPECT_TRUE(refusal(unknown_module).starts_with("modules_to_save"));

  LoraConfig nothing = small_config();
  nothing.exclude_pattern = ".*";
  EXPECT_TRUE(refusal(nothing).starts_with("exclude_modules"));
  LoraConfig beyond;
  beyond.layers_to_transform = {0, 40};
  EXPECT_TRUE(refusal(beyond).starts_with("layers_to_transform")) << refusal(beyond);

  LoraConfig of_none = small_config();
  of_none.rank_pattern = {{"k_proj", 2}, {"q_porj", 3}};
  EXPECT_TRUE(refusal(of_none).starts_with("rank_pattern")) << refusal(of_none);
  EXPECT_NE(refusal(of_none).find("did you mean `q_proj`"), std::string::npos);
  LoraConfig of_another = small_config();
  of_another.all_linear = false;
  of_another.target_names = {"q_proj"};
  of_another.alpha_pattern = {{"k_proj", 2}};  // k_proj has no LoRA
  EXPECT_TRUE(refusal(of_another).starts_with("alpha_pattern")) << refusal(of_another);
  EXPECT_NE(refusal(of_another).find("carries LoRA matches `k_proj`"), std::string::npos);
  LoraConfig left_out = small_config();
  left_out.exclude_names = {"lm_head", "layers.7.q_proj"};
  EXPECT_TRUE(refusal(left_out).starts_with("exclude_modules")) << refusal(left_out);
  left_out.exclude_names = {"lm_head", "layers.1.self_attn.q_proj"};
  EXPECT_EQ(refusal(left_out), "");
  left_out.exclude_names = {};
  left_out.exclude_pattern = ".*layers\\.9\\..*";
  EXPECT_TRUE(refusal(left_out).starts_with("exclude_modules")) << refusal(left_out);
  LoraConfig left_over = small_config();
  left_over.all_linear = false;
  left_over.target_names = {"q_proj", "k_proj"};
  left_over.exclude_names = {"q_proj", "k_proj"};
  // The model has two layers, each with two such modules.
  EXPECT_NE(refusal(left_over).find("leaves out every module that target_modules names: all 4"),
            std::string::npos)
      << refusal(left_over);
  EXPECT_TRUE(refusal(left_over).starts_with("exclude_modules")) << refusal(left_over);

  LoraConfig broken = small_config();
  broken.rank_pattern = {{"(q", 3}};
  EXPECT_TRUE(refusal(broken).starts_with("rank_pattern")) << refusal(broken);
}

TEST(Attach, ATiedHeadIsNotTrainedWhole) {
  const auto model = tiny_decoder(/*tied_head=*/true);
  LoraConfig config = small_config();
  config.modules_to_save = {"embed_tokens"};
  EXPECT_THROW(LoraModel::create(*model, config, 1), ConfigError);
}

class Saved : public ::testing::Test {
 protected:
  // Saves an adapter with changed values and parameters of every kind.
  Saved() {
    LoraConfig config = small_config();
    config.use_dora = true;
    config.rank_pattern = {{"gate_proj", 1}};
    config.modules_to_save = {"lm_head"};
    const LoraModel lora = LoraModel::create(*model_, config, 1);
    stir(lora);
    saved_ = copies(lora.parameters());
    lora.save(folder_.path(), "base");
  }

  io::Json config() const { return io::read_json_file(folder_ / "adapter_config.json"); }
  void write_config(const io::Json& json) const {
    std::ofstream(folder_ / "adapter_config.json") << json.dump();
  }
  void write_weights(const NamedTensors& tensors) const {
    std::vector<io::TensorSource> sources;
    for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
    io::write_safetensors(folder_ / "adapter_model.safetensors", std::move(sources));
  }
  // Returns the error of loading, or "" if the adapter loads. An exception other than DataError
  // fails the test.
  std::string refusal() const {
    const auto model = tiny_decoder();
    try {
      LoraModel::load(*model, folder_.path());
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::unique_ptr<nn::Decoder> model_ = tiny_decoder();
  NamedTensors saved_;
};

TEST_F(Saved, LoadsToTheSameBits) {
  const auto again = tiny_decoder();
  LoraModel lora = LoraModel::load(*again, folder_.path());
  expect_equal(copies(lora.parameters()), saved_);
  EXPECT_EQ(lora.config().base_model, "base");
  for (nn::Linear* linear : model_->block_linears())
    EXPECT_EQ(linear->trains(), linear_of(*again, linear->name()).trains());
}

TEST_F(Saved, EveryTensorMustHaveItsPlace) {
  const std::string name = "base_model.model.model.layers.0.mlp.up_proj.lora_B.weight";
  NamedTensors missing = saved_;
  missing.erase(name);
  write_weights(missing);
  EXPECT_NE(refusal().find(name), std::string::npos);

  NamedTensors extra = saved_;
  extra["base_model.model.model.layers.9.mlp.up_proj.lora_B.weight"] = at::ones({2});
  write_weights(extra);
  EXPECT_NE(refusal().find("layers.9"), std::string::npos);

  NamedTensors misshapen = saved_;
  misshapen[name] = at::ones({12, 2});
  write_weights(misshapen);
  EXPECT_NE(refusal().find("[12, 3], found [12, 2]"), std::string::npos) << refusal();
}

TEST_F(Saved, AnyTypeInAnyFieldOfTheConfigLoadsOrIsRefused) {
  const io::Json good = config();
  const std::vector<io::Json> values = {nullptr,
                                        true,
                                        0,
                                        7,
                                        2.5,
                                        1e300,
                                        "",
                                        "x",
                                        "(",
                                        {1},
                                        {"x"},
                                        {nullptr},
                                        {"("},
                                        {{"x", 1}},
                                        {{"x", nullptr}},
                                        {{"(", 1}},
                                        io::Json::object()};
  for (const auto& [key, original] : good.items()) {
    for (const io::Json& value : values) {
      io::Json changed = good;
      changed[key] = value;
      write_config(changed);
      try {
        refusal();
      } catch (const std::exception& error) {
        ADD_FAILURE() << key << " = " << value.dump() << ": " << error.what();
      }
    }
  }
}

TEST_F(Saved, AForeignPatternThatMatchesNothingIsTold) {
  io::Json json = config();
  json["alpha_pattern"] = {{"vision_proj", 3}};
  json["exclude_modules"] = {"vision_tower"};
  write_config(json);
  const auto model = tiny_decoder();
  const LoraModel lora = LoraModel::load(*model, folder_.path());
  ASSERT_EQ(lora.unmatched().size(), 2U);
  EXPECT_EQ(lora.unmatched()[0].pattern, "vision_tower");
  EXPECT_EQ(lora.unmatched()[1].pattern, "vision_proj");
}

// Convoy saved such adapters before it followed PEFT's rule; "norm" then meant only model.norm.
TEST_F(Saved, ModulesThatANameEndsWithinAWordMayBeMissing) {
  const auto base = tiny_decoder();
  LoraConfig norms = small_config();
  norms.modules_to_save = {"model.norm"};
  const LoraModel earlier = LoraModel::create(*base, norms, 1);
  stir(earlier);
  earlier.save(folder_.path(), "base");
  io::Json json = config();
  json["modules_to_save"] = {"norm"};
  write_config(json);
  const auto model = tiny_decoder();
  const LoraModel lora = LoraModel::load(*model, folder_.path());
  expect_equal(copies(lora.parameters()), copies(earlier.parameters()));
  ASSERT_FALSE(lora.left_to_model().empty());
  EXPECT_EQ(lora.left_to_model().front(), "model.layers.0.input_layernorm");
  for (const nn::NamedTensor& parameter : model->parameters())
    EXPECT_EQ(parameter.value.requires_grad(), parameter.name == "model.norm.weight")
        << parameter.name;
}

// PEFT writes these embeddings if save_embedding_layers is set, for example after tokens were added
// in spare rows.
TEST_F(Saved, EmbeddingsBesideTheAdapterReplaceTheModels) {
  const std::string name = "base_model.model.model.embed_tokens.weight";
  NamedTensors brought = saved_;
  brought[name] = at::randn({13, 8});
  write_weights(brought);
  const auto model = tiny_decoder();
  const LoraModel lora = LoraModel::load(*model, folder_.path());
  EXPECT_TRUE(lora.brings_embeddings());
  EXPECT_TRUE(brings_embeddings(folder_.path()));
  EXPECT_TRUE(copies(model->parameters()).at("model.embed_tokens.weight").equal(brought[name]));
  EXPECT_EQ(lora.parameters().size(), saved_.size());

  brought[name] = at::randn({15, 8});  // the base has fewer rows
  write_weights(brought);
  EXPECT_NE(refusal().find("base.resize_token_embeddings(15)"), std::string::npos) << refusal();
}

TEST(Attach, AnAdapterOfPeftWithATiedEmbedding) {
  TemporaryFolder folder;
  const std::string prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
  NamedTensors tensors = {{prefix + "A.weight", at::randn({2, 8})},
                          {prefix + "B.weight", at::randn({8, 2})},
                          {"base_model.model.model.embed_tokens.weight", at::randn({13, 8})}};
  const auto write = [&](bool ties) {
    const io::Json config = {{"peft_type", "LORA"},
                             {"r", 2},
                             {"lora_alpha", 4},
                             {"target_modules", "model.layers.0.self_attn.q_proj"},
                             {"modules_to_save", {"embed_tokens"}},
                             {"ensure_weight_tying", ties}};
    write_file_atomic(folder / "adapter_config.json", config.dump());
    std::vector<io::TensorSource> sources;
    for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
    io::write_safetensors(folder / "adapter_model.safetensors", std::move(sources));
  };
  const auto refusal = [&]() -> std::string {
    try {
      LoraModel::load(*tiny_decoder(/*tied_head=*/true), folder.path());
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "";
  };
  // PEFT writes the tied head as a copy of the embedding.
  tensors["base_model.model.lm_head.weight"] =
      tensors.at("base_model.model.model.embed_tokens.weight").clone();
  write(/*ties=*/true);
  EXPECT_EQ(refusal(), "");
  const auto model = tiny_decoder(/*tied_head=*/true);
  const LoraModel lora = LoraModel::load(*model, folder.path());
  EXPECT_TRUE(
      model->head().weight().equal(tensors.at("base_model.model.model.embed_tokens.weight")));
  EXPECT_FALSE(lora.brings_embeddings());  // it trains the embeddings itself
  EXPECT_TRUE(io::Json::parse(lora.config_text("base"))["ensure_weight_tying"]);

  tensors["base_model.model.lm_head.weight"].add_(1);
  write(/*ties=*/true);
  EXPECT_NE(refusal().find("tie_word_embeddings = False"), std::string::npos) << refusal();
  write(/*ties=*/false);
  const std::string said = refusal();
  EXPECT_NE(said.find("tie_word_embeddings = False"), std::string::npos) << said;
  EXPECT_EQ(said.find("tie_word_embeddings"), said.rfind("tie_word_embeddings")) << said;
}

TEST_F(Saved, AHintIsPrintedOnce) {
  io::Json json = config();
  json["target_modules"] = {"q_proj", "lm_head"};
  json["modules_to_save"] = nullptr;
  write_config(json);
  const std::string said = refusal();
  const std::string hint = "list it in modules_to_save instead";
  EXPECT_NE(said.find(hint), std::string::npos) << said;
  EXPECT_EQ(said.find(hint), said.rfind(hint)) << said;
}

TEST_F(Saved, AFolderThatIsNoAdapterIsRefused) {
  fs::remove(folder_ / "adapter_model.safetensors");
  EXPECT_NE(refusal().find("adapter_model.safetensors"), std::string::npos);
  fs::remove(folder_ / "adapter_config.json");
  EXPECT_NE(refusal().find("adapter_config.json"), std::string::npos);
}

TEST(Merge, IsTheAdaptedModelWithoutTheAdapter) {
  for (const bool dora : {false, true}) {
    const auto model = tiny_decoder();
    const NamedTensors base = copies(model->parameters());
    LoraConfig config = small_config();
    config.use_dora = dora;
    LoraModel lora = LoraModel::create(*model, config, 1);
    stir(lora);
    const at::Tensor adapted = logits_of(*model);
    expect_equal(copies(model->parameters()), base);  // the base is unchanged until merge()
    lora.merge();
    EXPECT_EQ(lora.num_adapted(), 0);
    EXPECT_TRUE(at::allclose(logits_of(*model), adapted, 1e-4, 1e-4)) << "dora " << dora;
    const NamedTensors merged = copies(model->parameters());
    for (const auto& [name, value] : base)
      EXPECT_EQ(merged.at(name).equal(value), !name.ends_with("_proj.weight")) << name;
  }
}

TEST(Merge, AnAdapterThatHasNotLearntLeavesEveryBit) {
  for (const bool dora : {false, true}) {
    const auto model = tiny_decoder();
    const NamedTensors base = copies(model->parameters());
    LoraConfig config = small_config();
    config.use_dora = dora;
    LoraModel::create(*model, config, 1).merge();
    expect_equal(copies(model->parameters()), base);
  }
}

}  // namespace
}  // namespace convoy::adapters
