// SPDX-License-Identifier: Apache-2.0
//
// Golden models written as GGUF files and read again, for tests of what these files hold.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/gguf_export.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/causal_lm.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::testing {

class Gguf : public ::testing::Test {
 protected:
  // A golden model with a tokenizer, and with changed settings.
  io::ModelFolder model(const std::string& name, const io::Json& changes = io::Json::object()) {
    const std::filesystem::path folder = folder_ / name;
    std::filesystem::create_directories(folder);
    for (const auto& entry :
         std::filesystem::directory_iterator(source_folder() / "tests/golden/models" / name))
      std::filesystem::copy_file(entry.path(), folder / entry.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing);
    io::Json config =
        io::read_json_file(source_folder() / "tests/golden/models" / name / "config.json");
    io::Json& text = config.contains("text_config") ? config["text_config"] : config;
    for (const auto& [key, value] : changes.items()) text[key] = value;
    write_file_atomic(folder / "config.json", config.dump());
    write_file_atomic(
        folder / "tokenizer.json",
        R"({"added_tokens":[],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
        R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}})");
    return io::ModelFolder::open(folder.string());
  }

  // Like model(), with drawn weights, for changes that need other weights than the golden ones.
  io::ModelFolder drawn_model(const std::string& name, const io::Json& changes) {
    const std::filesystem::path folder = model(name, changes).path();
    const architecture::DecoderSpec spec =
        families::read_decoder_spec(io::ModelFolder::open(folder.string()));
    const std::string outer = spec.text_module.empty() ? "" : "language_model.";
    at::manual_seed(7);
    std::vector<io::TensorSource> tensors;
    for (const auto& parameter : architecture::declare_parameters(spec))
      tensors.push_back(device::tensor_source(outer + parameter.name,
                                              at::randn(parameter.shape, at::kFloat) * 0.3));
    io::write_safetensors(folder / "model.safetensors", std::move(tensors));
    return io::ModelFolder::open(folder.string());
  }

  std::vector<std::string> write(const io::ModelFolder& source, const char* type,
                                 int64_t piece_values = int64_t{1} << 22) {
    const models::CheckpointWeights weights = models::open_weights(source);
    return models::export_gguf(
        source,
        [&](const std::string& name, int64_t begin, const at::Tensor& out) {
          weights.read_elements(name, begin, out);
        },
        file(), {.type = gguf::file_type(type), .name = "test", .piece_values = piece_values});
  }
  std::filesystem::path file() const { return folder_ / "x.gguf"; }

  // Compares the weights of the file with the weights of `source`; `tolerance`: by how much they
  // may differ.
  void expect_same_weights(const io::ModelFolder& source, double tolerance = 0) {
    const io::ModelFolder found_folder = io::ModelFolder::open(file().string());
    const models::CheckpointWeights wanted = models::open_weights(source),
                                    found = models::open_weights(found_folder);
    for (const auto& parameter :
         architecture::declare_parameters(families::read_decoder_spec(source))) {
      const at::Tensor left = found.read(parameter.name, at::kFloat);
      const at::Tensor right = wanted.read(parameter.name, at::kFloat);
      if (tolerance == 0) {
        EXPECT_TRUE(left.equal(right)) << parameter.name;
      } else {
        EXPECT_LE((left - right).abs().max().item<double>(), tolerance) << parameter.name;
      }
    }
  }

  TemporaryFolder folder_;
};

inline void expect_same_spec(const architecture::DecoderSpec& found,
                             const architecture::DecoderSpec& wanted) {
  EXPECT_EQ(found.vocab_size, wanted.vocab_size);
  EXPECT_EQ(found.hidden_size, wanted.hidden_size);
  EXPECT_EQ(found.num_heads, wanted.num_heads);
  EXPECT_EQ(found.num_kv_heads, wanted.num_kv_heads);
  EXPECT_EQ(found.head_dim, wanted.head_dim);
  EXPECT_EQ(found.ffn_size, wanted.ffn_size);
  EXPECT_EQ(found.max_positions, wanted.max_positions);
  EXPECT_EQ(found.norm_epsilon, wanted.norm_epsilon);
  EXPECT_EQ(found.norm_order, wanted.norm_order);
  EXPECT_EQ(found.query_key_norm, wanted.query_key_norm);
  EXPECT_EQ(found.norm_over_heads, wanted.norm_over_heads);
  EXPECT_EQ(found.weightless_head_norms, wanted.weightless_head_norms);
  EXPECT_EQ(found.value_norm, wanted.value_norm);
  EXPECT_EQ(found.embedding_norm, wanted.embedding_norm);
  EXPECT_EQ(found.after_norm_epsilon, wanted.after_norm_epsilon);
  EXPECT_EQ(found.final_norm_order, wanted.final_norm_order);
  EXPECT_EQ(found.attention_gate, wanted.attention_gate);
  EXPECT_EQ(found.gate_map, wanted.gate_map);
  EXPECT_EQ(found.layer_scalars, wanted.layer_scalars);
  EXPECT_TRUE(found.layer_inputs == wanted.layer_inputs);
  EXPECT_EQ(found.fused_qkv, wanted.fused_qkv);
  EXPECT_EQ(found.fused_gate_up, wanted.fused_gate_up);
  EXPECT_TRUE(found.norms == wanted.norms);
  EXPECT_EQ(found.qkv_bias, wanted.qkv_bias);
  EXPECT_EQ(found.attention_output_bias, wanted.attention_output_bias);
  EXPECT_EQ(found.ffn_bias, wanted.ffn_bias);
  EXPECT_EQ(found.activation, wanted.activation);
  EXPECT_EQ(found.embedding_scale, wanted.embedding_scale);
  EXPECT_EQ(found.attention_scale, wanted.attention_scale);
  EXPECT_EQ(found.query_growth, wanted.query_growth);
  EXPECT_EQ(found.query_growth_positions, wanted.query_growth_positions);
  EXPECT_EQ(found.residual_scale, wanted.residual_scale);
  EXPECT_EQ(found.logit_scale, wanted.logit_scale);
  EXPECT_EQ(found.score_cap, wanted.score_cap);
  EXPECT_EQ(found.logit_cap, wanted.logit_cap);
  EXPECT_EQ(found.tied_head, wanted.tied_head);
  EXPECT_TRUE(found.ropes == wanted.ropes);
  EXPECT_TRUE(found.delta_net == wanted.delta_net);
  ASSERT_EQ(found.layers.size(), wanted.layers.size());
  for (size_t layer = 0; layer < found.layers.size(); ++layer) {
    EXPECT_EQ(found.layers[layer].rope, wanted.layers[layer].rope) << layer;
    EXPECT_EQ(found.layers[layer].sliding_window, wanted.layers[layer].sliding_window) << layer;
    EXPECT_EQ(found.layers[layer].mixer, wanted.layers[layer].mixer) << layer;
    EXPECT_EQ(found.layers[layer].keys_of, wanted.layers[layer].keys_of) << layer;
    EXPECT_EQ(found.layers[layer].keys_are_values, wanted.layers[layer].keys_are_values) << layer;
    EXPECT_EQ(found.head_dim_of(found.layers[layer]), wanted.head_dim_of(wanted.layers[layer]))
        << layer;
    EXPECT_EQ(found.kv_heads_of(found.layers[layer]), wanted.kv_heads_of(wanted.layers[layer]))
        << layer;
    EXPECT_EQ(found.ffn_size_of(found.layers[layer]), wanted.ffn_size_of(wanted.layers[layer]))
        << layer;
  }
}

inline at::Tensor logits_of(const io::ModelFolder& folder) {
  const std::vector<int64_t> ids = {3, 41, 5, 77, 20, 9}, positions = {0, 1, 2, 3, 4, 5};
  const std::unique_ptr<nn::CausalLm> model = models::load_causal_lm(folder, at::kFloat);
  const at::NoGradGuard no_gradients;
  return model->head().forward(
      model->hidden_states(nn::TokenBatch(ids, positions, {0, 6}), nn::ForwardOptions{}));
}

// The file's names of a layer's tensors, without "blk.1.".
inline std::set<std::string> names_in_layer(const gguf::File& file) {
  constexpr std::string_view kStart = "blk.1.";
  std::set<std::string> names;
  for (const gguf::TensorPlace& place : file.tensors())
    if (place.name.starts_with(kStart)) names.insert(place.name.substr(kStart.size()));
  return names;
}

inline std::vector<float> floats_of(const gguf::File& file, const char* name) {
  const gguf::TensorPlace* const place = file.find_tensor(name);
  if (place == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(place->num_rows() * place->row_values()));
  gguf::decode(place->type, file.stored(*place), values);
  return values;
}

}  // namespace convoy::testing
