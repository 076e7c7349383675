// SPDX-License-Identifier: Apache-2.0
//
// Tests refusals of bad model folders. Each case edits a good folder, and the error must name the
// key or the tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

class ModelFolderCopy {
 public:
  explicit ModelFolderCopy(const std::string& name,
                           const std::string& config_file = "config.json") {
    const fs::path source = testing::golden_model(name);
    config_ = io::read_json_file(source / config_file);
    const io::SafetensorsFile weights(source / "model.safetensors");
    for (const io::TensorView& view : weights.tensors())
      tensors_[view.name] = device::copy_to_tensor(view);
  }
  io::Json& config() { return config_; }
  Tensors& tensors() { return tensors_; }

  // Returns the sentence of the DataError that loading throws, or "" if the model loads.
  std::string refusal() {
    write_file_atomic(folder_ / "config.json", config_.dump());
    std::vector<io::TensorSource> sources;
    for (const auto& [name, value] : tensors_)
      sources.push_back(device::tensor_source(name, value));
    io::write_safetensors(folder_ / "model.safetensors", std::move(sources));
    try {
      load_causal_lm(io::ModelFolder::open(folder_.path().string()), at::kFloat);
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "";
  }

 private:
  testing::TemporaryFolder folder_;
  io::Json config_;
  Tensors tensors_;
};

void expect_config_refused(const std::string& model, const std::string& key, const io::Json& value,
                           const std::string& config_file = "config.json") {
  ModelFolderCopy copy(model, config_file);
  copy.config()[key] = value;
  const std::string sentence = copy.refusal();
  EXPECT_NE(sentence.find(key), std::string::npos)
      << model << " " << key << " " << value.dump() << ": " << sentence;
  EXPECT_NE(sentence.find("config.json"), std::string::npos) << sentence;
}

TEST(ConfigRefusal, SizesOutOfRange) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads"}) {
    for (const io::Json& value :
         {io::Json(-1), io::Json(0), io::Json(1e18), io::Json(2.5), io::Json("8"), io::Json()}) {
      expect_config_refused("llama", key, value);
    }
  }
  expect_config_refused("llama", "num_key_value_heads", 2);  // 2 does not divide 3 heads
  expect_config_refused("llama", "head_dim", 9);             // an odd number of features
  expect_config_refused("llama", "rms_norm_eps", -1e-5);
  expect_config_refused("llama", "max_position_embeddings", -1);
}

TEST(ConfigRefusal, MathsThatNoFamilyHas) {
  expect_config_refused("llama", "hidden_act", "relu");
  expect_config_refused("llama", "model_type", "lama");
  expect_config_refused("llama", "partial_rotary_factor", 0.5);
  expect_config_refused("llama", "quantization_config", {{"quant_method", "bitsandbytes"}});
  expect_config_refused("gemma3", "attn_logit_softcapping", 50.0);
  expect_config_refused("llama", "final_logit_softcapping", 30.0);
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    for (const io::Json& value : {io::Json(0), io::Json(-30.0), io::Json("30"), io::Json(true)})
      expect_config_refused("gemma2", key, value);
  expect_config_refused("gemma3", "final_logit_softcapping", 0);
  expect_config_refused("gemma2", "sliding_window", io::Json());
  expect_config_refused("gemma2", "use_bidirectional_attention", true);
  expect_config_refused("gemma3", "use_bidirectional_attention", true);
  expect_config_refused("gemma3", "layer_types",
                        {"full_attention", "chunked", "full_attention", "full_attention"});
  expect_config_refused("gemma3", "layer_types", {"full_attention"});
  expect_config_refused("gemma3", "rope_parameters",
                        {{"rope_type", "default"}, {"rope_theta", 1e4}});
  expect_config_refused("gemma4", "enable_moe_block", true);
  expect_config_refused("gemma4", "num_experts", 128);
  expect_config_refused("gemma4", "use_bidirectional_attention", "all");
  expect_config_refused("gemma4", "num_kv_shared_layers", 6);
  expect_config_refused("gemma4", "num_kv_shared_layers", 3);  // no layer sees all keys
  expect_config_refused("gemma4", "vocab_size_per_layer_input", 112);
  expect_config_refused("gemma4", "per_layer_config", {{"2", {{"intermediate_size", 8}}}});
  expect_config_refused("gemma4", "per_layer_config", {{"5", {{"head_dim", 14}}}});
  expect_config_refused("gemma4", "per_layer_config",
                        {{"2", {{"head_dim", 14}}}});  // layer 4 has 10
  expect_config_refused("gemma4", "global_head_dim", 13, "config.v4.json");
  expect_config_refused("gemma4", "rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}});
  expect_config_refused("qwen2", "layer_types", {"sliding_attention", "full_attention"});
  expect_config_refused("mistral", "layer_types",
                        {"sliding_attention", "full_attention", "sliding_attention"});
  expect_config_refused("mistral", "layer_types",
                        {"full_attention", "full_attention", "full_attention"});
  expect_config_refused("mistral", "sliding_window", 0);
  expect_config_refused("smollm3", "no_rope_layers", {1, 1, 1, 0});
  expect_config_refused("smollm3", "no_rope_layers", io::Json::array());
  expect_config_refused("smollm3", "no_rope_layers", {1, 1, 2, 0, 1});
  expect_config_refused("smollm3", "no_rope_layer_interval", 0);
  expect_config_refused("smollm3", "layer_types",
                        {"full_attention", "sliding_attention", "full_attention", "full_attention",
                         "full_attention"});
}

// The hint must not advise another value of the key, which would load another model.
TEST(ConfigRefusal, OfAFormThatIsMissingAsksForAnotherModel) {
  const std::vector<std::tuple<const char*, const char*, io::Json, const char*>> cases = {
      {"llama", "hidden_act", "relu", "`llama` with the activation `relu`"},
      {"llama", "model_type", "lama", "`lama` is not supported; there are llama, "},
      {"llama", "model_type", "granitemoe", "it needs a mixture of experts"},
      {"llama", "partial_rotary_factor", 0.5, "a rotation of a part of each head"},
      {"llama", "num_local_experts", 8, "`llama` with a mixture of experts"},
      {"llama", "rope_parameters", {{"rope_type", "ntk"}}, "`llama` with the rotation `ntk`"},
      {"qwen3", "attn_output_gate", true, "`qwen3` with an output gate of attention"},
      {"qwen2", "quantization_config", {{"quant_method", "gptq"}}, "`gptq` is not supported"},
      {"gemma3", "attn_logit_softcapping", 50.0,
       "`gemma3_text` with soft caps on attention scores"},
      {"gemma3", "use_bidirectional_attention", "all", "attention that looks ahead"},
      {"gemma4", "enable_moe_block", true, "`gemma4_text` with a mixture of experts"},
      {"mistral",
       "layer_types",
       {"sliding_attention", "full_attention", "sliding_attention"},
       "windows in a part of its layers"},
      {"gemma3",
       "layer_types",
       {"full_attention", "linear_attention", "full_attention", "full_attention"},
       "layers of the type `linear_attention`"}};
  for (const auto& [model, key, value, said] : cases) {
    ModelFolderCopy copy(model);
    copy.config()[key] = value;
    const std::string sentence = copy.refusal();
    EXPECT_NE(sentence.find(said), std::string::npos) << key << ": " << sentence;
    EXPECT_NE(sentence.find("take "), std::string::npos) << sentence;
    for (const char* advice : {"correct the key", "did you mean", "must be"})
      EXPECT_EQ(sentence.find(advice), std::string::npos) << sentence;
  }
  ModelFolderCopy one("llama");
  one.config()["num_local_experts"] = 1;
  EXPECT_EQ(one.refusal(), "");
}

TEST(ConfigRefusal, OfATextModelThatIsMissingSaysItsForms) {
  ModelFolderCopy copy("ministral3-nested");
  copy.config()["text_config"]["model_type"] = "mistral4";
  const std::string sentence = copy.refusal();
  EXPECT_NE(sentence.find("text_config.model_type: `mistral4`"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("a mixture of experts"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("there are mistral, ministral3"), std::string::npos) << sentence;
}

architecture::DecoderSpec spec_with(const std::string& model, const std::string& key,
                                    const io::Json& value) {
  io::Json config = io::read_json_file(testing::golden_model(model) / "config.json");
  if (value.is_discarded())
    config.erase(key);
  else
    config[key] = value;
  const testing::TemporaryFolder folder;
  write_file_atomic(folder / "config.json", config.dump());
  return families::read_decoder_spec(io::ModelFolder::open(folder.path().string()));
}

// If a file leaves a key out, Convoy takes transformers' default.
TEST(ConfigDefaults, AreThoseOfTransformers) {
  const io::Json absent(io::Json::value_t::discarded);
  EXPECT_EQ(spec_with("mistral", "sliding_window", absent).layers.back().sliding_window, 4096);
  EXPECT_EQ(spec_with("mistral", "sliding_window", nullptr).layers.front().sliding_window, 0);
  EXPECT_EQ(spec_with("mistral", "head_dim", absent).head_dim, 8);
  EXPECT_TRUE(spec_with("smollm3", "tie_word_embeddings", absent).tied_head);
  const auto unrotated = [](const architecture::DecoderSpec& spec) {
    std::vector<int64_t> layers;
    for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
      if (spec.layers[layer].rope == architecture::kNoRope) layers.push_back(layer);
    return layers;
  };
  EXPECT_EQ(unrotated(spec_with("smollm3", "no_rope_layers", absent)), std::vector<int64_t>{3});
  EXPECT_EQ(unrotated(spec_with("smollm3", "no_rope_layers", {0, 1, 0, 1, 1, 0, 0})),
            (std::vector<int64_t>{0, 2}));
  const architecture::DecoderSpec window = spec_with("smollm3-window", "layer_types", absent);
  EXPECT_EQ(window.layers[0].sliding_window, 6);
  EXPECT_EQ(window.layers[1].sliding_window, 0);
}

TEST(ConfigDefaults, SoftCapsOfGemma) {
  const io::Json absent(io::Json::value_t::discarded), none;
  const architecture::DecoderSpec capped = spec_with("gemma2", "query_pre_attn_scalar", absent);
  EXPECT_EQ(capped.score_cap, 2.5);
  EXPECT_EQ(capped.logit_cap, 6.0);
  EXPECT_EQ(capped.attention_scale, 1.0 / 16);
  EXPECT_EQ(spec_with("gemma2", "attn_logit_softcapping", absent).score_cap, 50.0);
  EXPECT_EQ(spec_with("gemma2", "attn_logit_softcapping", none).score_cap, 0.0);
  EXPECT_EQ(spec_with("gemma2", "final_logit_softcapping", absent).logit_cap, 30.0);
  EXPECT_EQ(spec_with("gemma2", "final_logit_softcapping", none).logit_cap, 0.0);
  EXPECT_EQ(spec_with("gemma3", "final_logit_softcapping", none).logit_cap, 0.0);
  EXPECT_EQ(spec_with("gemma3", "final_logit_softcapping", absent).logit_cap, 0.0);
  EXPECT_EQ(spec_with("gemma3", "final_logit_softcapping", 25).logit_cap, 25.0);
  const architecture::DecoderSpec windows = spec_with("gemma2", "layer_types", absent);
  EXPECT_EQ(windows.layers[0].sliding_window, 7);
  EXPECT_EQ(windows.layers[1].sliding_window, 0);
  EXPECT_EQ(spec_with("gemma2", "sliding_window", absent).layers[2].sliding_window, 4096);
}

TEST(ConfigDefaults, MuseGlimmerCountsLayersFromTheLast) {
  const io::Json absent(io::Json::value_t::discarded);
  const architecture::DecoderSpec spec = spec_with("muse_glimmer", "layer_types", absent);
  const architecture::DecoderSpec thetas = spec_with("muse_glimmer", "layer_rope_theta", absent);
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer) {
    const bool is_full = layer == 0 || layer == 4;
    EXPECT_EQ(spec.layers[layer].sliding_window, is_full ? 0 : 7) << layer;
    EXPECT_EQ(thetas.layers[layer].rope, is_full ? architecture::kNoRope : 0) << layer;
  }
  EXPECT_EQ(spec_with("muse_glimmer", "sliding_window", absent).layers[1].sliding_window, 2048);
  EXPECT_EQ(spec_with("muse_glimmer", "post_norm_eps", absent).after_norm_epsilon, 1e-8);
  EXPECT_EQ(spec_with("muse_glimmer", "rms_norm_eps", absent).norm_epsilon, 1e-5);
  EXPECT_EQ(spec_with("muse_glimmer", "final_logit_softcapping", absent).logit_cap, 20.0);
  EXPECT_EQ(spec_with("muse_glimmer", "output_multiplier", absent).logit_scale,
            0.19611613513818404);
  EXPECT_EQ(spec_with("muse_glimmer", "qk_scale_factor", absent).attention_scale,
            3.87 / std::sqrt(14.0));
  // The key of the whole model counts, not the key in text_config.
  EXPECT_TRUE(spec_with("muse_glimmer-nested", "tie_word_embeddings", true).tied_head);
  const io::Json others = {0, 500000.0, 10000.0, 500000.0, 0};
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, io::Json>>{{"attention_bias", true},
                                                     {"layer_rope_theta", others},
                                                     {"layer_rope_theta", {0, 500000.0}},
                                                     {"layer_rope_theta", io::Json(5, "0")},
                                                     {"layer_types", {"full_attention"}},
                                                     {"sliding_window", nullptr},
                                                     {"qk_scale_factor", 0},
                                                     {"output_multiplier", -1},
                                                     {"num_experts", 8}})
    expect_config_refused("muse_glimmer", key, value);
}

TEST(ConfigDefaults, GemmaMeansTheApproximationByGelu) {
  using architecture::Activation;
  const io::Json absent(io::Json::value_t::discarded);
  EXPECT_EQ(spec_with("gemma", "hidden_act", "gelu").activation, Activation::GeluTanh);
  EXPECT_EQ(spec_with("gemma", "hidden_act", absent).activation, Activation::GeluTanh);
  EXPECT_TRUE(spec_with("gemma", "tie_word_embeddings", absent).tied_head);
  EXPECT_EQ(spec_with("gemma", "head_dim", absent).head_dim, 256);
  for (const char* key : {"hidden_act", "use_bidirectional_attention", "final_logit_softcapping"})
    expect_config_refused("gemma", key, "relu");
}

TEST(ConfigDefaults, GraniteScalesNothingAndSeedOssHasBiases) {
  const io::Json absent(io::Json::value_t::discarded);
  EXPECT_EQ(spec_with("granite", "embedding_multiplier", absent).embedding_scale, 1.0);
  EXPECT_EQ(spec_with("granite", "residual_multiplier", absent).residual_scale, 1.0);
  EXPECT_EQ(spec_with("granite", "attention_multiplier", absent).attention_scale, 1.0);
  EXPECT_EQ(spec_with("granite", "logits_scaling", absent).logit_scale, 1.0);
  EXPECT_EQ(spec_with("granite", "logits_scaling", 16).logit_scale, 0.0625);
  EXPECT_TRUE(spec_with("seed_oss", "attention_bias", absent).qkv_bias);
  EXPECT_FALSE(spec_with("seed_oss", "attention_out_bias", absent).attention_output_bias);
  for (const char* key :
       {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"})
    for (const io::Json& value : {io::Json(0), io::Json(-1.5), io::Json("1")})
      expect_config_refused("granite", key, value);
}

TEST(ConfigDefaults, Olmo3WindowsAndRotationsByLayerType) {
  const io::Json absent(io::Json::value_t::discarded);
  const architecture::DecoderSpec spec = spec_with("olmo3", "layer_types", absent);
  EXPECT_EQ(spec.layers[0].sliding_window, 9);
  EXPECT_EQ(spec.layers[3].sliding_window, 0);
  EXPECT_TRUE(spec.ropes[spec.layers[0].rope].kind == architecture::RopeKind::Default);
  EXPECT_TRUE(spec.ropes[spec.layers[3].rope].kind == architecture::RopeKind::Yarn);
  EXPECT_EQ(spec_with("olmo3", "rms_norm_eps", absent).norm_epsilon, 1e-5);
  expect_config_refused("olmo3", "sliding_window", nullptr);
  expect_config_refused("olmo3", "rope_parameters", {{"rope_type", "default"}});
}

TEST(ConfigDefaults, Phi3AndGlmRotateAPartOfEachHead) {
  const io::Json absent(io::Json::value_t::discarded);
  const architecture::DecoderSpec phi3 = spec_with("phi3", "sliding_window", 5);
  EXPECT_EQ(phi3.ropes.at(0).rotated_features, 6);
  EXPECT_EQ(phi3.max_positions, 256);
  EXPECT_EQ(phi3.ropes.at(0).original_max_positions, 128);
  EXPECT_EQ(phi3.layers.back().sliding_window, 5);
  EXPECT_EQ(spec_with("phi3-window", "sliding_window", nullptr).layers.front().sliding_window, 0);
  // The original length beside the rule takes precedence over the length within the rule.
  EXPECT_EQ(
      spec_with("phi3", "original_max_position_embeddings", 48).ropes.at(0).original_max_positions,
      48);
  const architecture::DecoderSpec glm = spec_with("glm4", "rope_parameters", absent);
  EXPECT_EQ(glm.ropes.at(0).rotated_features, glm.head_dim / 2);
  EXPECT_TRUE(glm.ropes.at(0).neighbours);
  EXPECT_TRUE(spec_with("glm4", "attention_bias", absent).qkv_bias);
  EXPECT_FALSE(glm.attention_output_bias);
  const io::Json odd = {{"rope_type", "default"}, {"partial_rotary_factor", 0.3}};
  ModelFolderCopy copy("glm4");
  copy.config()["rope_parameters"] = odd;  // the rule rotates 3 of 12 features
  EXPECT_NE(copy.refusal().find("partial_rotary_factor"), std::string::npos);
}

TEST(ConfigDefaults, Qwen35HasAttentionInEveryFourthLayer) {
  using architecture::TokenMixer;
  const io::Json absent(io::Json::value_t::discarded);
  const architecture::DecoderSpec usual = spec_with("qwen3_5", "layer_types", absent);
  EXPECT_EQ(usual.num_layers_with(TokenMixer::GatedDeltaNet), 3);
  EXPECT_TRUE(usual.layers[3].mixer == TokenMixer::Attention);
  EXPECT_EQ(usual.ropes.at(0).rotated_features, 4);  // a quarter of 16 features
  EXPECT_EQ(spec_with("qwen3_5", "rope_parameters", absent).ropes.at(0).rotated_features, 4);
  EXPECT_EQ(spec_with("qwen3_5", "linear_conv_kernel_dim", absent).delta_net.conv_width, 4);
  EXPECT_EQ(spec_with("qwen3_5-nested", "tie_word_embeddings", true).tied_head, true);
  const io::Json types = {"linear_attention", "sliding_attention", "full_attention",
                          "full_attention"};
  const io::Json recurrent(4, "linear_attention");
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, io::Json>>{{"layer_types", types},
                                                     {"layer_types", recurrent},
                                                     {"layer_types", {"full_attention"}},
                                                     {"attn_output_gate", false},
                                                     {"hidden_act", "gelu_pytorch_tanh"},
                                                     {"linear_num_value_heads", 5},
                                                     {"linear_key_head_dim", 0},
                                                     {"num_experts", 8}})
    expect_config_refused("qwen3_5", key, value);
}

TEST(ConfigDefaults, Ministral3GrowsItsQueriesAndMistral3HoldsEither) {
  const io::Json absent(io::Json::value_t::discarded);
  const architecture::DecoderSpec usual = spec_with("ministral3", "rope_parameters", absent);
  EXPECT_EQ(usual.query_growth, 0.1);
  EXPECT_EQ(usual.query_growth_positions, 16384);
  EXPECT_TRUE(usual.ropes.at(0).kind == architecture::RopeKind::Yarn);
  const architecture::DecoderSpec spec = spec_with("ministral3", "sliding_window", 5);
  EXPECT_EQ(spec.query_growth_positions, 8);
  EXPECT_EQ(spec.layers.front().sliding_window, 5);
  io::Json text =
      io::read_json_file(testing::golden_model("ministral3-nested") / "config.json")["text_config"];
  text["model_type"] = "mistral";
  text["sliding_window"] = nullptr;
  EXPECT_EQ(spec_with("ministral3-nested", "text_config", text).family, "mistral");
  text["model_type"] = "llama";
  ModelFolderCopy copy("ministral3-nested");
  copy.config()["text_config"] = text;
  EXPECT_NE(copy.refusal().find("model_type"), std::string::npos);
}

// The text model of a nested checkpoint is exported alone, with the model_type of its family.
TEST(Export, ANestedTextModelHasItsOwnType) {
  testing::TemporaryFolder folder;
  for (const auto& [name, type] :
       {std::pair("gemma3-nested", "gemma3_text"), std::pair("ministral3-nested", "ministral3"),
        std::pair("muse_glimmer-nested", "muse_glimmer_text")}) {
    const auto source = io::ModelFolder::open(testing::golden_model(name).string());
    export_model(*load_causal_lm(source, at::kFloat), source, folder / name,
                 {.extent = Extent::TextAlone});
    const io::Json written = io::read_json_file(folder / name / "config.json");
    EXPECT_EQ(written["model_type"], type);
    EXPECT_EQ(written["architectures"][0], families::text_family_of(source).architecture);
  }
}

TEST(ConfigRefusal, RotaryKinds) {
  for (const char* kind : {"longrope", "su", "ntk"}) {
    expect_config_refused("llama", "rope_scaling", {{"rope_type", kind}, {"factor", 2.0}},
                          "config.v4.json");
  }
  expect_config_refused("llama", "rope_scaling", {{"rope_type", "linear"}},
                        "config.v4.json");  // the factor is missing
  expect_config_refused("llama", "rope_scaling",
                        {{"rope_type", "linear"}, {"factor", 2.0}});  // contradicts rope_parameters
  expect_config_refused("llama", "rope_theta", 0, "config.v4.json");
}

// Within max_position_embeddings the rule `dynamic` has no effect.
TEST(ConfigRefusal, DynamicRotationIsThePlainOneAndItsFactorIsRequired) {
  const io::Json rule = {{"rope_type", "dynamic"}, {"rope_theta", 500.0}, {"factor", 2.0}};
  const architecture::DecoderSpec spec = spec_with("llama", "rope_parameters", rule);
  EXPECT_TRUE(spec.ropes.at(0) == (architecture::RopeSpec{.theta = 500.0}));
  EXPECT_EQ(spec.max_positions, 128);
  expect_config_refused("llama", "rope_parameters", {{"rope_type", "dynamic"}, {"factor", 0}});
}

TEST(ConfigRefusal, LongRopeHasTwoListsOfNumbers) {
  io::Json rule = {{"rope_type", "longrope"},
                   {"rope_theta", 100.0},
                   {"original_max_position_embeddings", 32},
                   {"short_factor", {1.0, 1.5, 2.0, 2.5, 3.0}},
                   {"long_factor", {1.0, 2.0, 4.0, 8.0, 16.0}}};
  const architecture::DecoderSpec spec = spec_with("llama", "rope_parameters", rule);
  EXPECT_EQ(spec.max_positions, 128);
  EXPECT_EQ(spec.ropes.at(0).divisors, (std::vector<double>{1.0, 1.5, 2.0, 2.5, 3.0}));
  EXPECT_EQ(spec.ropes.at(0).long_divisors, (std::vector<double>{1.0, 2.0, 4.0, 8.0, 16.0}));
  EXPECT_NEAR(spec.ropes.at(0).table_scale, std::sqrt(1.0 + std::log(4.0) / std::log(32.0)), 1e-9);
  io::Json short_of_one = rule;
  short_of_one["long_factor"].erase(0);
  expect_config_refused("llama", "rope_parameters", short_of_one);
  io::Json negative = rule;
  negative["long_factor"][0] = -1.0;
  expect_config_refused("llama", "rope_parameters", negative);
  io::Json growing = {{"rope_type", "longrope"},
                      {"llama_4_scaling_beta", 0.1},
                      {"original_max_position_embeddings", 32},
                      {"short_factor", io::Json::array({1, 1, 1, 1, 1, 1, 1})},
                      {"long_factor", io::Json::array({1, 1, 1, 1, 1, 1, 1})}};
  expect_config_refused("ministral3", "rope_parameters", growing);
  const io::Json by_type = {{"full_attention", rule}, {"sliding_attention", rule}};
  expect_config_refused("gemma3", "rope_parameters", by_type);
  for (const io::Json& wrong :
       {io::Json(), io::Json::array({1.0}), io::Json::array({1, 1, 1, 1, "1"}),
        io::Json::array({1, 1, 1, 1, 0})}) {
    rule["short_factor"] = wrong;
    expect_config_refused("llama", "rope_parameters", rule);
  }
}

// Users add YaRN to a published config.json and leave its max_position_embeddings as they are.
TEST(ConfigRefusal, YarnReachesBeyondThePositionsOfTheFile) {
  const io::Json yarn = {
      {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  const architecture::DecoderSpec spec = spec_with("llama", "rope_parameters", yarn);
  EXPECT_EQ(spec.max_positions, 512);
  EXPECT_NEAR(spec.ropes.at(0).table_scale, 1.1386294, 1e-6);  // 0.1 ln 4 + 1
  const io::Json scaled = {{"type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.5}};
  EXPECT_EQ(spec_with("llama", "rope_parameters", scaled).ropes.at(0).table_scale, 1.5);
  const io::Json crossed = {
      {"type", "yarn"}, {"factor", 4.0}, {"beta_fast", 1.0}, {"beta_slow", 2.0}};
  expect_config_refused("llama", "rope_parameters", crossed);
}

TEST(ConfigRefusal, IgnoredSettingsLoad) {
  ModelFolderCopy copy("llama");
  copy.config()["attention_dropout"] = 0.1;
  copy.config()["pretraining_tp"] = 1;
  copy.config()["eos_token_id"] = {2, 3};
  copy.config()["some_tool_version"] = "1";
  EXPECT_EQ(copy.refusal(), "");
}

// Whatever the file holds, the model loads and can be exported again, or loading throws a
// DataError.
class AnyConfig : public ::testing::TestWithParam<const char*> {
 protected:
  AnyConfig() {
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(testing::golden_model(GetParam()) / file, folder_ / file);
  }

  void try_out(const std::string& file, const io::Json& json, const std::string& what) const {
    std::ofstream(folder_ / file) << json.dump();
    try {
      const io::ModelFolder folder = io::ModelFolder::open(folder_.path().string());
      families::end_token_ids(folder);
      families::read_decoder_spec(folder);
      if (!what.ends_with("= null") && !what.ends_with("= {}")) return;
      const auto model = load_causal_lm(folder, at::kFloat);
      for (const Extent extent : {Extent::Whole, Extent::TextAlone})
        export_model(*model, folder, folder_ / "export", {.extent = extent});
    } catch (const DataError& error) {
      EXPECT_FALSE(error.location().file.empty()) << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_P(AnyConfig, OfAnyTypeInAnyFieldLoadsOrIsRefused) {
  const std::vector<io::Json> values = {nullptr,
                                        true,
                                        0,
                                        -1,
                                        1,
                                        2.5,
                                        1e300,
                                        18446744073709551615U,
                                        "",
                                        "x",
                                        {1},
                                        "1",
                                        {"x"},
                                        {nullptr},
                                        io::Json::object(),
                                        {{"x", {1}}}};
  const io::Json good = io::read_json_file(folder_ / "config.json");
  io::Json other_keys = good;
  for (const char* key : {"text_config", "rope_scaling", "quantization_config", "auto_map"})
    if (!other_keys.contains(key)) other_keys[key] = nullptr;
  for (const auto& [key, original] : other_keys.items()) {
    for (const io::Json& value : values) {
      io::Json changed = good;
      changed[key] = value;
      try_out("config.json", changed, key + " = " + value.dump());
      if (!original.is_object()) continue;
      for (const auto& [inner, ignored] : original.items()) {
        changed[key] = original;
        changed[key][inner] = value;
        try_out("config.json", changed, key + "." + inner + " = " + value.dump());
      }
    }
  }
  std::ofstream(folder_ / "config.json") << good.dump();
  for (const char* key : {"eos_token_id", "bos_token_id", "temperature", "do_sample"})
    for (const io::Json& value : values)
      try_out("generation_config.json", {{key, value}}, std::string(key) + " " + value.dump());
}

INSTANTIATE_TEST_SUITE_P(Families, AnyConfig,
                         ::testing::Values("llama", "qwen2-window", "qwen3", "llama-yarn", "gemma3",
                                           "mistral", "smollm3-window", "gemma3-nested", "granite",
                                           "seed_oss", "olmo3", "phi3", "glm4",
                                           "ministral3-nested"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Export, TheTextConfigOfAModelThatIsNotNestedIsNoConfigOfItsOwn) {
  testing::TemporaryFolder folder;
  for (const io::Json& other : {io::Json(), io::Json::object(), io::Json(5)}) {
    fs::copy_file(testing::golden_model("qwen2") / "model.safetensors",
                  folder / "model.safetensors", fs::copy_options::overwrite_existing);
    io::Json config = io::read_json_file(testing::golden_model("qwen2") / "config.json");
    config.erase("eos_token_id");
    config["text_config"] = other;
    write_file_atomic(folder / "config.json", config.dump());
    const io::ModelFolder source = io::ModelFolder::open(folder.path().string());
    const auto model = load_causal_lm(source, at::kFloat);
    export_model(*model, source, folder / "export", {});
    const io::Json written = io::read_json_file(folder / "export/config.json");
    EXPECT_EQ(written["model_type"], "qwen2");
    EXPECT_EQ(written["hidden_size"], config["hidden_size"]);
  }
}

TEST(Export, EachWeightInATypeOfItsOwn) {
  testing::TemporaryFolder folder;
  const auto source = io::ModelFolder::open(testing::golden_model("gemma3-nested").string());
  const auto model = load_causal_lm(source, at::kFloat);
  auto dtypes = stored_dtypes(source);
  ASSERT_EQ(dtypes.size(), model->parameters().size());
  for (auto& [name, dtype] : dtypes)
    dtype = name.find("norm") == std::string::npos ? at::kHalf : at::kBFloat16;
  export_model(*model, source, folder.path(), {.own_dtypes = dtypes, .extent = Extent::TextAlone});
  const io::SafetensorsFile written(folder / "model.safetensors");
  for (const nn::NamedTensor& parameter : model->parameters()) {
    const at::Tensor found = device::copy_to_tensor(written.require(parameter.name));
    EXPECT_TRUE(found.equal(parameter.value.to(dtypes.at(parameter.name)))) << parameter.name;
  }
}

TEST(WeightRefusal, EveryTensorMustMatchBothWays) {
  ModelFolderCopy missing("qwen2");
  missing.tensors().erase("model.layers.1.self_attn.k_proj.bias");
  EXPECT_NE(missing.refusal().find("1 missing: model.layers.1.self_attn.k_proj.bias"),
            std::string::npos);

  ModelFolderCopy extra("qwen2");
  extra.tensors()["score.weight"] = at::zeros({2, 36});
  EXPECT_NE(extra.refusal().find("1 unexpected: score.weight"), std::string::npos);

  ModelFolderCopy shape("qwen2");
  shape.tensors()["model.norm.weight"] = at::zeros({35});
  EXPECT_NE(shape.refusal().find("model.norm.weight [35] instead of [36]"), std::string::npos);

  ModelFolderCopy type("qwen2");
  type.tensors()["model.norm.weight"] = at::zeros({36}, at::kLong);
  EXPECT_NE(type.refusal().find("model.norm.weight I64"), std::string::npos);
}

TEST(WeightRefusal, TensorsThatMayBeThere) {
  ModelFolderCopy frequencies("llama");
  frequencies.tensors()["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::zeros({5});
  EXPECT_EQ(frequencies.refusal(), "");

  ModelFolderCopy tied("llama");
  tied.tensors()["lm_head.weight"] = tied.tensors().at("model.embed_tokens.weight").clone();
  EXPECT_EQ(tied.refusal(), "");
  tied.tensors()["lm_head.weight"].add_(1);
  EXPECT_NE(tied.refusal().find("tie_word_embeddings"), std::string::npos);
}

TEST(WeightRefusal, OtherPrecisionsAreConverted) {
  for (const at::ScalarType stored : {at::kHalf, at::kBFloat16, at::kDouble}) {
    ModelFolderCopy copy("llama");
    for (auto& [name, value] : copy.tensors()) value = value.to(stored);
    EXPECT_EQ(copy.refusal(), "");
  }
}

TEST(WeightRefusal, OtherComputeTypes) {
  const auto folder = io::ModelFolder::open(testing::golden_model("gemma3").string());
  EXPECT_THROW(load_causal_lm(folder, at::kHalf), ConfigError);
}

TEST(EndTokens, UnionOfTheFiles) {
  testing::TemporaryFolder folder;
  io::Json config = io::read_json_file(testing::golden_model("llama") / "config.json");
  config["eos_token_id"] = {9, 4};
  write_file_atomic(folder / "config.json", config.dump());
  write_file_atomic(folder / "generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(families::end_token_ids(io::ModelFolder::open(folder.path().string())),
            (std::vector<int32_t>{4, 7, 9}));
}

}  // namespace
}  // namespace convoy::models
