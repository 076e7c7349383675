// SPDX-License-Identifier: Apache-2.0
//
// Every family as GGUF and back: the same specification, the same weights.
#include "convoy/model/models/gguf_export.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/encode.h"
#include "convoy/core/io/gguf/rope_divisors.h"
#include "convoy/core/io/json_text.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/convert.h"
#include "convoy/model/models/gguf_file_test.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using architecture::DecoderSpec;
using testing::expect_same_spec;
using testing::floats_of;
using testing::Gguf;
using testing::logits_of;
using testing::names_in_layer;

TEST_F(Gguf, KeepsEveryFamily) {
  const io::Json gemma2 = {{"query_pre_attn_scalar", 14}};
  const io::Json gemma = {{"query_pre_attn_scalar", 10}};
  const io::Json glimmer = {{"post_norm_eps", 1e-8}};
  for (const auto& [name, changes] :
       std::vector<std::pair<std::string, io::Json>>{{"llama", io::Json::object()},
                                                     {"llama-biased", io::Json::object()},
                                                     {"mistral-nemo", io::Json::object()},
                                                     {"qwen2", io::Json::object()},
                                                     {"qwen3", io::Json::object()},
                                                     {"qwen3-yarn", io::Json::object()},
                                                     {"gemma", io::Json::object()},
                                                     {"gemma2", gemma2},
                                                     {"gemma3", gemma},
                                                     {"gemma3-nested", gemma},
                                                     {"gemma4", io::Json::object()},
                                                     {"gemma4-nested", io::Json::object()},
                                                     {"gemma4-unified", io::Json::object()},
                                                     {"gemma4-unified-nested", io::Json::object()},
                                                     {"muse_glimmer", glimmer},
                                                     {"muse_glimmer-nested", glimmer},
                                                     {"smollm3", io::Json::object()},
                                                     {"granite", io::Json::object()},
                                                     {"seed_oss", io::Json::object()},
                                                     {"olmo2", io::Json::object()},
                                                     {"phi3", io::Json::object()},
                                                     {"glm4", io::Json::object()},
                                                     {"ministral3", io::Json::object()},
                                                     {"ministral3-nested", io::Json::object()}}) {
    SCOPED_TRACE(name);
    const io::ModelFolder source = model(name, changes);
    const auto notices = write(source, "f32");
    EXPECT_TRUE(notices.empty()) << notices.front();
    expect_same_spec(families::read_decoder_spec(io::ModelFolder::open(file().string())),
                     families::read_decoder_spec(source));
    // Gemma's norms up to Gemma 3 are stored as 1 + w.
    const bool rounds = name.starts_with("gemma") || name.starts_with("muse");
    expect_same_weights(source, rounds ? 2e-7 : 0);
  }
}

// OLMo 3's rotation as its published files have it, and without biases, which llama.cpp lacks.
io::Json plain_olmo3() {
  const io::Json sliding = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  const io::Json full = {{"rope_type", "yarn"},
                         {"rope_theta", 500000.0},
                         {"factor", 4.0},
                         {"original_max_position_embeddings", 32}};
  return {{"attention_bias", false},
          {"rope_parameters", {{"full_attention", full}, {"sliding_attention", sliding}}}};
}

TEST_F(Gguf, KeepsFamiliesThatShareAnArchitecture) {
  const io::Json mistral = {{"model_type", "mistral"}, {"rope_scaling", nullptr}};
  const io::Json of_a_part = {
      {"rope_type", "default"}, {"rope_theta", 10000.0}, {"partial_rotary_factor", 0.6}};
  const io::Json growing = {{"rope_type", "default"},
                            {"rope_theta", 10000.0},
                            {"llama_4_scaling_beta", 0.3},
                            {"original_max_position_embeddings", 3}};
  const io::Json bounded = {{"rope_type", "yarn"},
                            {"rope_theta", 10000.0},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 4},
                            {"beta_fast", 20.0},
                            {"beta_slow", 2.0},
                            {"llama_4_scaling_beta", 0.2}};
  for (const auto& [name, changes, architecture] :
       std::vector<std::tuple<const char*, io::Json, const char*>>{
           {"olmo3", plain_olmo3(), "olmo2"},
           {"glm", {{"head_dim", 10}, {"rope_parameters", of_a_part}}, "chatglm"},
           {"ministral3-nested", mistral, "llama"},
           {"ministral3", {{"rope_parameters", growing}}, "mistral3"},
           {"ministral3", {{"rope_parameters", bounded}}, "mistral3"}}) {
    SCOPED_TRACE(name);
    const io::ModelFolder source = drawn_model(name, changes);
    const auto notices = write(source, "f32");
    EXPECT_TRUE(notices.empty()) << notices.front();
    EXPECT_EQ(gguf::File(file()).text("general.architecture"), architecture);
    const io::ModelFolder found = io::ModelFolder::open(file().string());
    expect_same_spec(families::read_decoder_spec(found), families::read_decoder_spec(source));
    expect_same_weights(source);
    EXPECT_TRUE(logits_of(found).equal(logits_of(source)));
    fs::remove(file());
  }
}

TEST_F(Gguf, AnswersAsTheFolderDoes) {
  for (const char* const name : {"llama", "granite", "seed_oss", "olmo2", "phi3", "glm4",
                                 "ministral3", "ministral3-nested"}) {
    const io::ModelFolder source = model(name);
    write(source, "f32");
    EXPECT_TRUE(logits_of(io::ModelFolder::open(file().string())).equal(logits_of(source))) << name;
  }
}

// llama.cpp's convert_hf_to_gguf.py writes these names and keys.
TEST_F(Gguf, GraniteHasItsScalesAndItsRowsInTheFilesOrder) {
  const io::ModelFolder source = model("granite");
  write(source, "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "granite");
  EXPECT_EQ(written.real("granite.attention.scale"), 0.15);
  EXPECT_EQ(written.real("granite.embedding_scale"), 6.0);
  EXPECT_EQ(written.real("granite.residual_scale"), 0.22);
  EXPECT_EQ(written.real("granite.logit_scale"), 8.0);
  EXPECT_EQ(written.integer("granite.rope.dimension_count", 0, 99), 10);
  EXPECT_EQ(written.find_tensor("output.weight"), nullptr);
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{"attn_norm.weight", "attn_q.weight", "attn_k.weight",
                                   "attn_v.weight", "attn_output.weight", "ffn_norm.weight",
                                   "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}));
  const at::Tensor own =
      open_weights(source).read("model.layers.1.self_attn.q_proj.weight", at::kFloat);
  const at::Tensor wanted = own.view({3, 2, 5, 30}).transpose(1, 2).contiguous();
  const auto found = written.stored(*written.find_tensor("blk.1.attn_q.weight"));
  ASSERT_EQ(found.size(), wanted.nbytes());
  EXPECT_EQ(std::memcmp(found.data(), wanted.const_data_ptr(), found.size()), 0);
}

// llama.cpp's keys of the soft caps; its own values stand for absent ones.
TEST_F(Gguf, Gemma2HasItsSoftCapsAndFourNorms) {
  write(model("gemma2", {{"query_pre_attn_scalar", 14}}), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "gemma2");
  EXPECT_EQ(written.real("gemma2.attn_logit_softcapping"), 2.5);
  EXPECT_EQ(written.real("gemma2.final_logit_softcapping"), 6.0);
  EXPECT_EQ(written.integer("gemma2.attention.sliding_window", 0, 99), 7);
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{
                "attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight",
                "attn_output.weight", "post_attention_norm.weight", "ffn_norm.weight",
                "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight", "post_ffw_norm.weight"}));
}

TEST_F(Gguf, SeedOssNamesItsSecondNormByAttention) {
  write(model("seed_oss"), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "seed_oss");
  EXPECT_EQ(written.integer("seed_oss.attention.key_length", 0, 99), 14);
  EXPECT_EQ(written.real("seed_oss.rope.freq_base"), 1e7);
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{"attn_norm.weight", "attn_q.weight", "attn_q.bias",
                                   "attn_k.weight", "attn_k.bias", "attn_v.weight", "attn_v.bias",
                                   "attn_output.weight", "post_attention_norm.weight",
                                   "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}));
}

TEST_F(Gguf, Olmo2HasNormsBehindAttentionAndFeedForward) {
  write(model("olmo2"), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "olmo2");
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{"attn_q.weight", "attn_k.weight", "attn_v.weight",
                                   "attn_output.weight", "attn_q_norm.weight", "attn_k_norm.weight",
                                   "post_attention_norm.weight", "ffn_gate.weight", "ffn_up.weight",
                                   "ffn_down.weight", "post_ffw_norm.weight"}));
  EXPECT_EQ(written.find_tensor("blk.1.attn_q_norm.weight")->shape, (std::vector<int64_t>{30}));
  EXPECT_EQ(written.find_tensor("blk.1.attn_k_norm.weight")->shape, (std::vector<int64_t>{6}));
}

TEST_F(Gguf, PhiHasFusedMapsAndBothListsOfDivisors) {
  write(model("phi3"), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "phi3");
  EXPECT_EQ(written.integer("phi3.context_length", 0, 999), 256);
  EXPECT_EQ(written.integer("phi3.rope.scaling.original_context_length", 0, 999), 128);
  EXPECT_NEAR(*written.real("phi3.rope.scaling.attn_factor"),
              std::sqrt(1 + std::log(2) / std::log(128)), 1e-7);
  EXPECT_EQ(written.text("phi3.rope.scaling.type"), std::nullopt);
  EXPECT_EQ(written.integer("phi3.rope.dimension_count", 0, 99), 6);
  EXPECT_EQ(written.integer("phi3.attention.sliding_window", 0, 99), 0);
  EXPECT_EQ(floats_of(written, "rope_factors_long.weight"), (std::vector<float>{1, 4, 16}));
  EXPECT_EQ(floats_of(written, "rope_factors_short.weight"), (std::vector<float>{1, 1.3f, 2.5f}));
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{"attn_norm.weight", "attn_qkv.weight", "attn_output.weight",
                                   "ffn_norm.weight", "ffn_up.weight", "ffn_down.weight"}));
  EXPECT_EQ(written.find_tensor("blk.1.ffn_up.weight")->shape, (std::vector<int64_t>{84, 32}));
  // A folder of it names the same rotation, longer rows too.
  const io::JsonReader config = io::ModelFolder::open(file().string()).config();
  EXPECT_EQ(config.require_int("max_position_embeddings", 1, 999), 256);
  EXPECT_EQ(config.require_object("rope_scaling").value(),
            (io::Json{{"type", "longrope"},
                      {"short_factor", {1.0, 1.3, 2.5}},
                      {"long_factor", {1.0, 4.0, 16.0}}}));
}

TEST_F(Gguf, PhisWindowIsKeptAndLlamaCppsLackOfItSaid) {
  const io::ModelFolder source = model("phi3-window");
  const auto notices = write(source, "f32");
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("beyond 7 tokens"), std::string::npos) << notices[0];
  EXPECT_EQ(gguf::File(file()).integer("phi3.attention.sliding_window", 0, 99), 7);
  expect_same_spec(families::read_decoder_spec(io::ModelFolder::open(file().string())),
                   families::read_decoder_spec(source));
  expect_same_weights(source);
}

TEST_F(Gguf, GlmRotatesThePartThatTheFileNames) {
  write(model("glm4"), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "glm4");
  EXPECT_EQ(written.integer("glm4.rope.dimension_count", 0, 99), 6);
  EXPECT_EQ(written.integer("glm4.attention.key_length", 0, 99), 12);
  EXPECT_EQ(
      names_in_layer(written),
      (std::set<std::string>{"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight",
                             "attn_output.weight", "post_attention_norm.weight", "ffn_norm.weight",
                             "ffn_up.weight", "ffn_down.weight", "post_ffw_norm.weight"}));
}

TEST_F(Gguf, Olmo3ListsTheLayersThatSlide) {
  write(drawn_model("olmo3", plain_olmo3()), "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.integer("olmo2.attention.sliding_window", 0, 99), 9);
  EXPECT_EQ(written.list("olmo2.attention.sliding_window_pattern")->integers,
            (std::vector<int64_t>{1, 1, 1, 0, 1}));
  EXPECT_EQ(written.text("olmo2.rope.scaling.type"), "yarn");
  EXPECT_EQ(written.real("olmo2.rope.scaling.factor"), 4.0);
  EXPECT_EQ(written.integer("olmo2.rope.scaling.original_context_length", 0, 99), 32);
}

TEST_F(Gguf, Ministral3HasTheGrowthOfItsQueriesAndItsRowsInTheFilesOrder) {
  const io::ModelFolder source = model("ministral3");
  write(source, "f32");
  const gguf::File written(file());
  EXPECT_EQ(written.real("mistral3.attention.temperature_scale"), 0.3);
  EXPECT_EQ(written.text("mistral3.rope.scaling.type"), "yarn");
  EXPECT_EQ(written.integer("mistral3.rope.scaling.original_context_length", 0, 99), 8);
  EXPECT_EQ(written.real("mistral3.rope.scaling.yarn_log_multiplier"), 1.0);
  EXPECT_EQ(written.real("mistral3.rope.scaling.yarn_beta_fast"), 32.0);
  const at::Tensor own =
      open_weights(source).read("model.layers.1.self_attn.q_proj.weight", at::kFloat);
  const at::Tensor wanted = own.view({3, 2, 7, 30}).transpose(1, 2).contiguous();
  const auto found = written.stored(*written.find_tensor("blk.1.attn_q.weight"));
  ASSERT_EQ(found.size(), wanted.nbytes());
  EXPECT_EQ(std::memcmp(found.data(), wanted.const_data_ptr(), found.size()), 0);
}

// llama.cpp's converter: -exp(A_log), no dim of the convolution's one input, and value heads in
// turn over the key heads.
TEST_F(Gguf, Qwen35HasItsValueHeadsInTheFilesOrder) {
  const io::ModelFolder source = drawn_model("qwen3_5", {{"linear_key_head_dim", 7}});
  EXPECT_TRUE(write(source, "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "qwen35");
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, int64_t>>{{"full_attention_interval", 4},
                                                    {"rope.dimension_count", 4},
                                                    {"ssm.conv_kernel", 4},
                                                    {"ssm.state_size", 7},
                                                    {"ssm.group_count", 2},
                                                    {"ssm.time_step_rank", 6},
                                                    {"ssm.inner_size", 42}})
    EXPECT_EQ(written.integer(std::string("qwen35.") + key, 0, 99), value) << key;
  ASSERT_NE(written.list("qwen35.rope.dimension_sections"), nullptr);
  EXPECT_EQ(written.list("qwen35.rope.dimension_sections")->integers,
            (std::vector<int64_t>{1, 1, 0, 0}));
  EXPECT_EQ(names_in_layer(written),
            (std::set<std::string>{"attn_norm.weight", "attn_qkv.weight", "attn_gate.weight",
                                   "ssm_beta.weight", "ssm_alpha.weight", "ssm_conv1d.weight",
                                   "ssm_norm.weight", "ssm_out.weight", "ssm_a", "ssm_dt.bias",
                                   "post_attention_norm.weight", "ffn_gate.weight", "ffn_up.weight",
                                   "ffn_down.weight"}));
  EXPECT_NE(written.find_tensor("blk.3.attn_q_norm.weight"), nullptr);
  const CheckpointWeights weights = open_weights(source);
  const auto own = [&](const char* name) {
    return weights.read(std::string("model.layers.1.linear_attn.") + name, at::kFloat);
  };
  const auto expect = [&](const char* name, const at::Tensor& wanted) {
    const std::vector<float> found = floats_of(written, name);
    ASSERT_EQ(static_cast<int64_t>(found.size()), wanted.numel()) << name;
    EXPECT_TRUE(at::tensor(found).equal(wanted.contiguous().view({-1}))) << name;
  };
  constexpr int64_t kKeys = 2 * 2 * 7;
  const auto turned = [](const at::Tensor& rows) {
    return rows.view({2, 3, -1}).transpose(0, 1).reshape(rows.sizes());
  };
  const at::Tensor qkv = own("in_proj_qkv.weight"), conv = own("conv1d.weight").squeeze(1);
  expect("blk.1.attn_qkv.weight",
         at::cat({qkv.narrow(0, 0, kKeys), turned(qkv.narrow(0, kKeys, 42))}));
  expect("blk.1.ssm_conv1d.weight",
         at::cat({conv.narrow(0, 0, kKeys), turned(conv.narrow(0, kKeys, 42))}));
  EXPECT_EQ(written.find_tensor("blk.1.ssm_conv1d.weight")->shape, (std::vector<int64_t>{70, 4}));
  expect("blk.1.attn_gate.weight", turned(own("in_proj_z.weight")));
  expect("blk.1.ssm_beta.weight", turned(own("in_proj_b.weight")));
  expect("blk.1.ssm_alpha.weight", turned(own("in_proj_a.weight")));
  expect("blk.1.ssm_a", turned(own("A_log")).exp().neg());
  expect("blk.1.ssm_dt.bias", turned(own("dt_bias")));
  expect("blk.1.ssm_norm.weight", own("norm.weight"));
  expect("blk.1.ssm_out.weight",
         own("out_proj.weight").view({30, 2, 3, 7}).transpose(1, 2).reshape({30, 42}));
  expect("blk.1.attn_norm.weight",
         weights.read("model.layers.1.input_layernorm.weight", at::kFloat) + 1);
}

TEST_F(Gguf, Qwen35IsReadAsItWas) {
  for (const char* const name : {"qwen3_5", "qwen3_5-nested"}) {
    SCOPED_TRACE(name);
    const io::ModelFolder source = drawn_model(name, {{"linear_key_head_dim", 7}});
    write(source, "f32");
    const io::ModelFolder found = io::ModelFolder::open(file().string());
    expect_same_spec(families::read_decoder_spec(found), families::read_decoder_spec(source));
    expect_same_weights(source, 5e-7);  // 1 + w, and the logarithm of exp(w)
    const at::Tensor wanted = logits_of(source);
    EXPECT_LE((logits_of(found) - wanted).abs().max().item<double>(),
              1e-5 * wanted.abs().max().item<double>());
    fs::remove(file());
  }
  // With as many key heads as value heads both orders are one.
  const io::ModelFolder source =
      drawn_model("qwen3_5", {{"linear_key_head_dim", 7}, {"linear_num_key_heads", 6}});
  for (const int64_t piece : {50, 1 << 20}) {
    write(source, "f16", piece);
    expect_same_weights(source, 2e-3);
  }
}

TEST_F(Gguf, WhatAnArchitectureLacksIsRefused) {
  const auto refusal = [&](const char* name, const io::Json& changes) {
    return gguf_refusal(families::read_decoder_spec(model(name, changes)));
  };
  const io::Json longrope = {{"rope_type", "longrope"},
                             {"rope_theta", 10000.0},
                             {"short_factor", {1, 1, 1, 1, 1}},
                             {"long_factor", {1, 1, 1, 1, 1}},
                             {"original_max_position_embeddings", 64}};
  const io::Json linear = {{"rope_type", "linear"}, {"rope_theta", 10000.0}, {"factor", 2.0}};
  io::Json other_theta = plain_olmo3(), scaled = plain_olmo3();
  other_theta["rope_parameters"]["sliding_attention"]["rope_theta"] = 10000.0;
  scaled["rope_parameters"]["sliding_attention"] = linear;
  for (const auto& [name, changes, reason] :
       std::vector<std::tuple<const char*, io::Json, const char*>>{
           {"olmo2", {{"tie_word_embeddings", true}}, "no head that is the embedding"},
           {"olmo2", {{"attention_bias", true}}, "no biases"},
           {"olmo2", {{"head_dim", 8}}, "heads that share hidden_size"},
           {"seed_oss", {{"attention_out_bias", true}}, "no biases"},
           {"granite", {{"hidden_act", "gelu_pytorch_tanh"}}, "another activation"},
           {"granite", {{"rope_parameters", longrope}}, "only for Phi"},
           {"glm4", {{"rope_parameters", linear}}, "scales no rotation"},
           {"gemma2", io::Json::object(), "divides queries by the root of 14"},
           {"gemma2",
            {{"query_pre_attn_scalar", 14}, {"final_logit_softcapping", nullptr}},
            "has soft caps on scores and logits"},
           {"gemma2",
            {{"query_pre_attn_scalar", 14}, {"attn_logit_softcapping", nullptr}},
            "has soft caps on scores and logits"},
           {"gemma2",
            {{"query_pre_attn_scalar", 14},
             {"layer_types", {"full_attention", "sliding_attention", "full_attention"}}},
            "every second layer"},
           {"gemma2-untied", io::Json::object(), "no biases"},
           {"qwen3_5-tied", io::Json::object(), "no biases"},
           {"qwen3_5", io::Json::object(), "values as wide as keys"},
           {"qwen3_5",
            {{"linear_key_head_dim", 7},
             {"layer_types",
              {"full_attention", "linear_attention", "full_attention", "linear_attention"}}},
            "every so-many-th layer"},
           {"gemma3",
            {{"query_pre_attn_scalar", 10}, {"final_logit_softcapping", 30.0}},
            "no soft cap on logits"},
           {"glm", {{"rope_parameters", linear}}, "scales no rotation"},
           {"glm", io::Json::object(), "heads that share hidden_size"},
           {"olmo3", io::Json::object(), "no biases"},
           {"olmo3", {{"attention_bias", false}}, "only the factor and the original length"},
           {"olmo3", other_theta, "all layers of this architecture by one rope_theta"},
           {"olmo3", scaled, "does not scale the rotation of sliding layers"}}) {
    EXPECT_NE(refusal(name, changes).find(reason), std::string::npos)
        << name << ": " << refusal(name, changes);
  }
  EXPECT_EQ(refusal("granite", {{"attention_bias", true}, {"mlp_bias", true}}), "");
}

TEST_F(Gguf, PiecesOfAnySizeMakeTheSameFile) {
  const io::ModelFolder source = model("llama");
  write(source, "f16");
  const std::string whole = read_file(file());
  for (const int64_t piece : {1, 100, 1000}) {
    write(source, "f16", piece);
    EXPECT_EQ(read_file(file()), whole) << piece;
  }
}

TEST_F(Gguf, HoldsTheCodesOfTheRowsInTheFilesOrder) {
  const io::ModelFolder source = model("mistral");  // rows of 32
  const auto notices = write(source, "q8_0");
  ASSERT_FALSE(notices.empty());
  EXPECT_NE(notices[0].find("no sliding windows in this architecture: beyond 9 tokens"),
            std::string::npos);
  const gguf::File written(file());
  EXPECT_EQ(written.integer("general.file_type", 0, 99), 7);
  const CheckpointWeights weights = open_weights(source);
  const DecoderSpec spec = families::read_decoder_spec(source);
  const gguf::TensorPlace* const place = written.find_tensor("blk.1.attn_q.weight");
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->type, gguf::TensorType::Q8_0);
  const at::Tensor own = weights.read("model.layers.1.self_attn.q_proj.weight", at::kFloat);
  // llama.cpp's converter: view(heads, 2, half, -1), transposed.
  const at::Tensor permuted =
      own.view({spec.num_heads, 2, spec.head_dim / 2, -1}).transpose(1, 2).contiguous().view({-1});
  std::vector<std::byte> wanted(static_cast<size_t>(place->bytes));
  gguf::encode(gguf::TensorType::Q8_0,
               {permuted.const_data_ptr<float>(), static_cast<size_t>(permuted.numel())}, wanted);
  const auto found = written.stored(*place);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()));
  expect_same_weights(source, 0.02);
}

TEST_F(Gguf, SaysWhereTheBlocksDoNotDivideTheRows) {
  const auto notices = write(model("qwen3"), "q4_k_m");  // rows of 30
  ASSERT_FALSE(notices.empty());
  EXPECT_NE(notices.front().find("written as f16: the rows are no multiple of"), std::string::npos);
}

TEST_F(Gguf, WhatLlamaCppComputesOtherwiseIsRefused) {
  for (const auto& [name, reason] :
       {std::pair("gemma3", "divides queries by the root of 10"),
        std::pair("qwen2-window", "no sliding windows"), std::pair("smollm3-window", "no biases"),
        std::pair("llama-yarn", "only the factor and the original length")}) {
    try {
      write(model(name), "f32");
      ADD_FAILURE() << name;
    } catch (const DataError& error) {
      EXPECT_NE(error.sentence().find(reason), std::string::npos) << error.sentence();
    }
  }
}

TEST_F(Gguf, FactorsOfLongRopeAreRefused) {
  const fs::path source = folder_ / "long";
  fs::copy(model("llama").path(), source);
  io::Json config = io::read_json_file(source / "config.json");
  config["rope_parameters"] = {{"rope_type", "longrope"},
                               {"rope_theta", 100.0},
                               {"original_max_position_embeddings", 32},
                               {"short_factor", {1.0, 1.5, 2.0, 2.5, 3.0}},
                               {"long_factor", {1.0, 2.0, 4.0, 8.0, 16.0}}};
  write_file_atomic(source / "config.json", config.dump());
  EXPECT_THROW(write(io::ModelFolder::open(source.string()), "f32"), DataError);
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(Gguf, ValuesThatATypeCannotHoldAreRefused) {
  const io::ModelFolder source = model("qwen2");
  const auto large = [](const std::string&, int64_t, const at::Tensor& out) { out.fill_(1e5); };
  EXPECT_THROW(export_gguf(source, large, file(), {.type = gguf::file_type("f16")}), NumericError);
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_NO_THROW(export_gguf(source, large, file(), {.type = gguf::file_type("bf16")}));
}

TEST_F(Gguf, BecomesAFolderOfSafetensorsAgain) {
  const io::ModelFolder source = model("llama");
  write(source, "f16");
  const fs::path out = folder_ / "back";
  int64_t last = 0;
  convert_model(io::ModelFolder::open(file().string()), out, {},
                [&](int64_t done, int64_t) { last = done; });
  const io::ModelFolder back = io::ModelFolder::open(out.string());
  EXPECT_EQ(back.config().require_string("torch_dtype"), "float16");
  EXPECT_TRUE(back.find("tokenizer.json"));
  const auto dtypes = stored_dtypes(back);
  EXPECT_EQ(static_cast<int64_t>(dtypes.size()), last);
  EXPECT_EQ(dtypes.at("model.layers.0.self_attn.q_proj.weight"), at::kHalf);
  EXPECT_EQ(dtypes.at("model.norm.weight"), at::kFloat);
  expect_same_spec(families::read_decoder_spec(back), families::read_decoder_spec(source));
  const CheckpointWeights found = open_weights(back), wanted = open_weights(source);
  for (const auto& [name, dtype] : dtypes)
    EXPECT_TRUE(
        found.read(name, at::kFloat).equal(wanted.read(name, at::kFloat).to(dtype).to(at::kFloat)))
        << name;
}

}  // namespace
}  // namespace convoy::models
