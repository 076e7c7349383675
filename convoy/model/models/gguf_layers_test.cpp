// SPDX-License-Identifier: Apache-2.0
//
// Gemma, Gemma 4 and Muse Glimmer as GGUF, under the names and keys that llama.cpp's converter
// writes and llama.cpp reads (v0.5.0: conversion/gemma.py, conversion/muse_glimmer.py, src/models).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "convoy/core/base/error.h"
#include "convoy/model/models/gguf_file_test.h"

namespace convoy::models {
namespace {

using testing::expect_same_spec;
using testing::floats_of;
using testing::Gguf;
using testing::logits_of;
using testing::names_in_layer;

const std::set<std::string> kGemmasNames = {
    "attn_norm.weight", "attn_q.weight",   "attn_k.weight", "attn_v.weight",  "attn_output.weight",
    "ffn_norm.weight",  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};

std::set<std::string> with(std::set<std::string> names, const std::set<std::string>& others) {
  names.insert(others.begin(), others.end());
  return names;
}

TEST_F(Gguf, GemmaHasTwoNormsAsOnePlusW) {
  const io::ModelFolder source = model("gemma");
  EXPECT_TRUE(write(source, "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "gemma");
  EXPECT_EQ(written.integer("gemma.attention.key_length", 0, 99), 14);
  EXPECT_EQ(written.find_tensor("output.weight"), nullptr);
  EXPECT_EQ(names_in_layer(written), kGemmasNames);
  const at::Tensor own =
      open_weights(source).read("model.layers.1.post_attention_layernorm.weight", at::kFloat);
  EXPECT_TRUE(at::tensor(floats_of(written, "blk.1.ffn_norm.weight")).equal(own + 1));
}

TEST_F(Gguf, Gemma4HasTheSizesOfBothKindsOfLayers) {
  const io::ModelFolder source = model("gemma4");
  EXPECT_TRUE(write(source, "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "gemma4");
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, int64_t>>{{"attention.key_length", 14},
                                                    {"attention.value_length", 14},
                                                    {"attention.key_length_swa", 10},
                                                    {"attention.value_length_swa", 10},
                                                    {"rope.dimension_count", 14},
                                                    {"rope.dimension_count_swa", 10},
                                                    {"attention.head_count_kv", 1},
                                                    {"attention.shared_kv_layers", 2},
                                                    {"attention.sliding_window", 7},
                                                    {"embedding_length_per_layer_input", 17}})
    EXPECT_EQ(written.integer(std::string("gemma4.") + key, 0, 99), value) << key;
  EXPECT_EQ(written.list("gemma4.feed_forward_length")->integers,
            (std::vector<int64_t>{22, 22, 22, 44, 44}));
  EXPECT_EQ(written.list("gemma4.attention.sliding_window_pattern")->integers,
            (std::vector<int64_t>{1, 1, 0, 1, 0}));
  EXPECT_EQ(written.real("gemma4.rope.freq_base"), 1000.0);
  EXPECT_EQ(written.real("gemma4.rope.freq_base_swa"), 100.0);
  EXPECT_EQ(written.real("gemma4.final_logit_softcapping"), 6.0);
  EXPECT_EQ(floats_of(written, "rope_freqs.weight"),
            (std::vector<float>{1, 1, 1, 1e30f, 1e30f, 1e30f, 1e30f}));
  EXPECT_EQ(
      names_in_layer(written),
      with(kGemmasNames, {"attn_q_norm.weight", "attn_k_norm.weight", "post_attention_norm.weight",
                          "post_ffw_norm.weight", "inp_gate.weight", "proj.weight",
                          "post_norm.weight", "layer_output_scale.weight"}));
  const CheckpointWeights weights = open_weights(source);
  for (const auto& [name, own] : std::vector<std::pair<const char*, const char*>>{
           {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
           {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
           {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
           {"blk.1.layer_output_scale.weight", "model.layers.1.layer_scalar"},
           {"blk.1.attn_norm.weight", "model.layers.1.input_layernorm.weight"},
           {"blk.1.post_norm.weight", "model.layers.1.post_per_layer_input_norm.weight"}})
    EXPECT_TRUE(
        at::tensor(floats_of(written, name)).equal(weights.read(own, at::kFloat).reshape({-1})))
        << name;
}

TEST_F(Gguf, Gemma4ListsTheHeadsOfLayersWhoseKeysAreValues) {
  const io::ModelFolder source =
      drawn_model("gemma4-keys",
                  {{"attention_bias", false},
                   {"layer_types", {"sliding_attention", "sliding_attention", "full_attention"}}});
  EXPECT_TRUE(write(source, "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.list("gemma4.attention.head_count_kv")->integers,
            (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(written.integer("gemma4.feed_forward_length", 0, 99), 38);
  EXPECT_EQ(written.find_tensor("blk.2.attn_v.weight"), nullptr);
  EXPECT_NE(written.find_tensor("output.weight"), nullptr);
  const io::ModelFolder found = io::ModelFolder::open(file().string());
  expect_same_spec(families::read_decoder_spec(found), families::read_decoder_spec(source));
  expect_same_weights(source);
  EXPECT_TRUE(logits_of(found).equal(logits_of(source)));
}

TEST_F(Gguf, GlimmerKeepsTheScaleOfScoresInItsNorms) {
  const io::ModelFolder source = model("muse_glimmer", {{"post_norm_eps", 1e-8}});
  EXPECT_TRUE(write(source, "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.text("general.architecture"), "muse-glimmer");
  EXPECT_EQ(written.real("muse-glimmer.logit_scale"), 0.4);
  EXPECT_EQ(written.real("muse-glimmer.final_logit_softcapping"), 5.0);
  EXPECT_EQ(written.list("muse-glimmer.attention.sliding_window_pattern")->integers,
            (std::vector<int64_t>{0, 1, 1, 1, 0}));
  EXPECT_EQ(floats_of(written, "blk.1.attn_q_norm.weight"), std::vector<float>(14, 2.3f));
  EXPECT_EQ(floats_of(written, "blk.1.attn_k_norm.weight"), std::vector<float>(14, 1.0f));
  EXPECT_EQ(names_in_layer(written),
            with(kGemmasNames, {"attn_q_norm.weight", "attn_k_norm.weight", "attn_gate.weight",
                                "post_attention_norm.weight", "post_ffw_norm.weight"}));
  const CheckpointWeights weights = open_weights(source);
  const auto own = [&](const char* name) { return weights.read(name, at::kFloat); };
  const auto written_as = [&](const char* name) { return at::tensor(floats_of(written, name)); };
  EXPECT_TRUE(written_as("output_norm.weight").equal(own("model.norm.weight")));
  EXPECT_TRUE(
      written_as("blk.1.attn_norm.weight").equal(own("model.layers.1.input_layernorm.weight") + 1));
  // llama.cpp's converter: view(heads, 2, half, -1), transposed.
  EXPECT_TRUE(written_as("blk.1.attn_q.weight")
                  .equal(own("model.layers.1.self_attn.q_proj.weight")
                             .view({3, 2, 7, 30})
                             .transpose(1, 2)
                             .reshape({-1})));
  EXPECT_TRUE(written_as("blk.1.attn_gate.weight")
                  .equal(own("model.layers.1.self_attn.gate_proj.weight").view({-1})));
}

TEST_F(Gguf, TheseFamiliesAnswerAsTheFolderDoes) {
  const io::Json none = io::Json::object();
  for (const auto& [name, changes] : std::vector<std::pair<const char*, io::Json>>{
           {"gemma", none},
           {"gemma4", none},
           {"gemma4-nested", none},
           {"gemma4-unified", none},
           {"muse_glimmer", {{"post_norm_eps", 1e-8}}},
           {"muse_glimmer-nested", {{"post_norm_eps", 1e-8}}}}) {
    const io::ModelFolder source = model(name, changes);
    write(source, "f32");
    const at::Tensor wanted = logits_of(source);
    EXPECT_LE(
        (logits_of(io::ModelFolder::open(file().string())) - wanted).abs().max().item<float>(),
        1e-5f * wanted.abs().max().item<float>())
        << name;
  }
}

// Files of llama.cpp's converter hold maps of keys that layers do not read.
TEST_F(Gguf, UnreadKeysOfGemma4AreLeftOut) {
  const io::ModelFolder source = model("gemma4-nested");
  write(source, "f32");
  EXPECT_EQ(gguf::File(file()).find_tensor("blk.4.attn_k.weight"), nullptr);
}

TEST_F(Gguf, PiecesOfGemma4AreJoinedByTheirMerges) {
  const io::ModelFolder source = model("gemma4");
  const std::string pieces =
      R"({"added_tokens":[{"id":0,"content":"<eos>","special":true},)"
      R"({"id":4,"content":"▁▁","special":false},{"id":5,"content":"<|x|>","special":false}],)"
      R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
      R"("model":{"type":"BPE","byte_fallback":true,"unk_token":"<unk>","vocab":{"<eos>":0,)"
      R"("<unk>":1,"▁":2,"a":3,"▁▁":4,"<0x0A>":6,"▁a":7,"aa":8},)"
      R"("merges":[["a","a"],["▁","▁"],["▁","a"]]}})";
  write_file_atomic(source.path() / "tokenizer.json", pieces);
  EXPECT_TRUE(write(io::ModelFolder::open(source.path()), "f32").empty());
  const gguf::File written(file());
  EXPECT_EQ(written.text("tokenizer.ggml.model"), "gemma4");
  EXPECT_EQ(written.list("tokenizer.ggml.merges")->texts,
            (std::vector<std::string>{"a a", "▁ ▁", "▁ a"}));
  EXPECT_EQ(written.list("tokenizer.ggml.tokens")->texts[4], "▁▁");
  const std::vector<int64_t>& types = written.list("tokenizer.ggml.token_type")->integers;
  EXPECT_EQ(std::vector<int64_t>(types.begin(), types.begin() + 9),
            (std::vector<int64_t>{3, 2, 1, 1, 1, 4, 6, 1, 1}));
  const io::Json read =
      io::parse_json(*io::ModelFolder::open(file().string()).text("tokenizer.json"), "tokenizer");
  EXPECT_EQ(read.at("model").at("merges"), io::parse_json(pieces, "").at("model").at("merges"));
  EXPECT_EQ(read.at("model").at("vocab").at("▁▁"), 4);
  EXPECT_EQ(read.at("model").at("byte_fallback"), true);
}

TEST_F(Gguf, TheInputsOfAllLayersKeepTheirBits) {
  const auto type_of = [](const char* name) {
    return gguf::choose_type(gguf::file_type("q8_0"), {}, name, {64, 64}).type;
  };
  EXPECT_EQ(type_of("per_layer_model_proj.weight"), gguf::TensorType::F16);
  EXPECT_EQ(type_of("blk.0.proj.weight"), gguf::TensorType::Q8_0);
}

TEST_F(Gguf, WhatLlamaCppLacksOfThemIsRefused) {
  const auto refusal = [&](const char* name, const io::Json& changes) {
    return gguf_refusal(families::read_decoder_spec(model(name, changes)));
  };
  const auto rotation = [](const io::Json& full, const io::Json& sliding) {
    return io::Json{
        {"rope_parameters", {{"full_attention", full}, {"sliding_attention", sliding}}}};
  };
  const io::Json plain = {{"rope_type", "default"}, {"rope_theta", 100.0}};
  const io::Json linear = {{"rope_type", "linear"}, {"rope_theta", 100.0}, {"factor", 2.0}};
  io::Json proportional = {
      {"rope_type", "proportional"}, {"rope_theta", 1000.0}, {"partial_rotary_factor", 0.5}};
  const io::Json scaled = rotation(proportional, linear);
  proportional["factor"] = 8.0;
  for (const auto& [name, changes, reason] :
       std::vector<std::tuple<const char*, io::Json, const char*>>{
           {"gemma", {{"tie_word_embeddings", false}}, "the embedding as the head"},
           {"gemma", {{"attention_bias", true}}, "no biases"},
           {"gemma4-keys", io::Json::object(), "no biases"},
           {"gemma4", rotation(plain, plain), "by the proportional rule"},
           {"gemma4", rotation(proportional, plain), "without a factor"},
           {"gemma4", scaled, "does not scale the rotation of sliding layers"},
           {"gemma4", {{"vocab_size_per_layer_input", 120}}, "as many embeddings"},
           {"gemma4", {{"num_kv_shared_layers", 1}}, "the last two that have their own"},
           {"muse_glimmer", io::Json::object(), "post_norm_eps of 1e-8"},
           {"muse_glimmer",
            {{"post_norm_eps", 1e-8}, {"layer_rope_theta", {0, 0, 500000, 500000, 0}}},
            "rotates the layers with a window"},
           {"muse_glimmer",
            {{"post_norm_eps", 1e-8}, {"tie_word_embeddings", true}},
            "no head that is the embedding"}})
    EXPECT_NE(refusal(name, changes).find(reason), std::string::npos)
        << name << ": " << refusal(name, changes);
}

}  // namespace
}  // namespace convoy::models
