// SPDX-License-Identifier: Apache-2.0
//
// Compares with files that bitsandbytes and transformers wrote (tests/golden/quantization).
#include "convoy/model/models/stored_codes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/machine/device/peak_meter.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/machine/device/tensor_memory.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"
#include "convoy/model/models/bitsandbytes_export.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/causal_lm.h"
#include "files/temporary_folder.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using kernels::BitsandbytesFormat;
using kernels::BitsandbytesWeight;
using kernels::CodeType;

fs::path golden() {
  return fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden/quantization";
}

class GoldenTensors : public ::testing::Test {
 protected:
  GoldenTensors() : file_(golden() / "tensors.safetensors") {
    for (const io::TensorView& view : file_.tensors())
      if (view.name.ends_with(".input"))
        cases_.push_back(view.name.substr(0, view.name.size() - 6));
  }
  at::Tensor tensor(const std::string& name) const {
    return device::copy_to_tensor(file_.require(name));
  }
  std::optional<StoredCodes> find(const std::string& name) const {
    return StoredCodes::find(
        name + ".weight", [&](const std::string& key) { return file_.find(key); }, "tensors");
  }

  io::SafetensorsFile file_;
  std::vector<std::string> cases_;
};

BitsandbytesFormat format_of(const std::string& name) {
  return {.type = name.find("/int8") != std::string::npos  ? CodeType::Int8
                  : name.find("/nf4") != std::string::npos ? CodeType::Nf4
                                                           : CodeType::Fp4,
          .block = 64,
          .nested = name.ends_with("-double")};
}

TEST_F(GoldenTensors, AreReadAndDecoded) {
  ASSERT_GT(cases_.size(), 60U);
  for (const std::string& name : cases_) {
    const std::optional<StoredCodes> stored = find(name);
    ASSERT_TRUE(stored) << name;
    EXPECT_EQ(stored->format(), format_of(name)) << name;
    EXPECT_TRUE(
        at::equal(kernels::decode_weight(stored->read(), at::kFloat), tensor(name + ".values")))
        << name;
  }
}

TEST_F(GoldenTensors, AreWhatEncodingMakes) {
  for (const std::string& name : cases_) {
    const BitsandbytesWeight found =
        kernels::encode_weight(tensor(name + ".input"), format_of(name));
    const BitsandbytesWeight wanted = find(name)->read();
    ASSERT_EQ(found.parts().size(), wanted.parts().size()) << name;
    for (size_t part = 0; part < found.parts().size(); ++part)
      EXPECT_TRUE(at::equal(*found.parts()[part].tensor, *wanted.parts()[part].tensor))
          << name << found.parts()[part].suffix;
  }
}

TEST_F(GoldenTensors, AreWrittenByteForByte) {
  const testing::TemporaryFolder folder;
  for (const std::string& name : cases_) {
    const BitsandbytesWeight weight =
        kernels::encode_weight(tensor(name + ".input"), format_of(name));
    std::vector<io::TensorSource> sources = sources_beside_codes(name + ".weight", weight);
    sources.push_back(device::tensor_source(name + ".weight", weight.codes));
    io::write_safetensors(folder / "written.safetensors", std::move(sources));
    const io::SafetensorsFile written(folder / "written.safetensors");
    size_t there = 0;
    for (const io::TensorView& view : file_.tensors())
      there += view.name.starts_with(name + ".") && !view.name.ends_with(".input") &&
               !view.name.ends_with(".values");
    // The modules of bitsandbytes add weight_format; its functions do not.
    EXPECT_EQ(written.tensors().size(), there + (format_of(name).type == CodeType::Int8)) << name;
    for (const io::TensorView& view : written.tensors()) {
      if (view.name.ends_with(".weight_format")) continue;
      const io::TensorView& wanted = file_.require(view.name);
      EXPECT_EQ(view.dtype, wanted.dtype) << view.name;
      EXPECT_EQ(view.shape, wanted.shape) << view.name;
      EXPECT_TRUE(std::equal(view.bytes.begin(), view.bytes.end(), wanted.bytes.begin(),
                             wanted.bytes.end()))
          << view.name;
    }
  }
}

TEST_F(GoldenTensors, DynamicMapsAreEqual) {
  EXPECT_TRUE(at::equal(kernels::dynamic_map(kernels::DynamicMap::Signed), tensor("signed_map")));
  EXPECT_TRUE(
      at::equal(kernels::dynamic_map(kernels::DynamicMap::Unsigned), tensor("unsigned_map")));
}

// If a tensor that belongs to a weight is damaged, the error names it.
TEST_F(GoldenTensors, WhatDoesNotFitIsRefused) {
  const std::string name = "square/fp32/nf4-double.weight";
  const auto refusal = [&](const std::string& key,
                           const std::function<void(io::TensorView&)>& harm) {
    std::map<std::string, io::TensorView> views;
    for (const io::TensorView& view : file_.tensors()) views[view.name] = view;
    harm(views.at(name + key));
    try {
      StoredCodes::find(
          name,
          [&](const std::string& wanted) -> const io::TensorView* {
            const auto found = views.find(wanted);
            return found == views.end() || found->second.bytes.empty() ? nullptr : &found->second;
          },
          "a file");
    } catch (const DataError& error) {
      return std::string(error.sentence());
    }
    return std::string("none");
  };
  for (const char* key : {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", ""}) {
    EXPECT_NE(refusal(key, [](io::TensorView& view) { view.bytes = {}; }).find(name + key),
              std::string::npos)
        << key;
    const auto shorten = [](io::TensorView& view) {
      const auto elements = static_cast<size_t>(view.num_elements());
      view.bytes = view.bytes.first(view.bytes.size() / elements * (elements - 1));
      view.shape = {static_cast<int64_t>(elements) - 1};
    };
    EXPECT_NE(refusal(key, shorten).find(name + key), std::string::npos) << key;
  }
  const auto other = file_.require("square/fp32/fp4.weight.quant_map");
  EXPECT_NE(refusal(".quant_map",
                    [&](io::TensorView& view) {
                      view = other;
                      view.name = name + ".quant_map";
                    })
                .find("is not nf4's"),
            std::string::npos);
  const std::string text =
      R"({"quant_type": "nf4", "blocksize": 48, "dtype": "float32", "shape": [64, 128]})";
  EXPECT_NE(refusal(".quant_state.bitsandbytes__nf4",
                    [&](io::TensorView& view) {
                      view.bytes = std::as_bytes(std::span(text));
                      view.shape = {std::ssize(text)};
                      view.descriptor = -1;
                    })
                .find("blocksize"),
            std::string::npos);
}

at::Tensor last_logits(nn::CausalLm& model, const std::vector<int64_t>& ids) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> positions(ids.size());
  for (size_t at = 0; at < ids.size(); ++at) positions[at] = static_cast<int64_t>(at);
  const nn::TokenBatch batch(ids, positions, {0, std::ssize(ids)});
  const at::Tensor hidden = model.hidden_states(batch, {});
  return model.head().base_forward(hidden.slice(0, std::ssize(ids) - 1)).view({-1});
}

nlohmann::json golden_json() { return nlohmann::json::parse(read_file(golden() / "golden.json")); }

void expect_logits(nn::CausalLm& model, const std::string& name) {
  const nlohmann::json json = golden_json();
  for (size_t row = 0; row < json["ids"].size(); ++row) {
    const auto wanted = json["logits"][name][row].get<std::vector<float>>();
    const at::Tensor found = last_logits(model, json["ids"][row].get<std::vector<int64_t>>());
    EXPECT_TRUE(at::allclose(found, at::tensor(wanted), 1e-4, 1e-4))
        << name << ": " << (found - at::tensor(wanted)).abs().max().item<float>();
  }
}

const std::vector<std::pair<std::string, BitsandbytesFormat>>& folders() {
  static const std::vector<std::pair<std::string, BitsandbytesFormat>> all{
      {"nf4", {CodeType::Nf4, 64, false}},
      {"nf4-double", {CodeType::Nf4, 64, true}},
      {"fp4", {CodeType::Fp4, 64, false}},
      {"int8", {CodeType::Int8, 64, false}}};
  return all;
}

TEST(QuantizedFolders, ComputeWhatTransformersComputes) {
  for (const auto& [name, format] : folders()) {
    const auto model = load_causal_lm(io::ModelFolder::open(golden() / name), at::kFloat);
    for (nn::Linear* linear : model->block_linears()) {
      ASSERT_TRUE(linear->is_bitsandbytes()) << linear->name();
      EXPECT_EQ(linear->coded().format, format);
    }
    EXPECT_FALSE(model->head().is_bitsandbytes());
    expect_logits(*model, name);
  }
}

// Weights that Convoy encodes while it loads the base folder equal, byte for byte, the codes that
// transformers stored.
TEST(QuantizedFolders, EqualThoseEncodedWhileLoading) {
  for (const auto& [name, format] : folders()) {
    const auto stored = load_causal_lm(io::ModelFolder::open(golden() / name), at::kFloat);
    const auto encoded = load_causal_lm(io::ModelFolder::open(golden() / "base"), at::kFloat,
                                        at::kCPU, {.format = format});
    const std::vector<nn::NamedTensor> wanted = stored->parameters();
    const std::vector<nn::NamedTensor> found = encoded->parameters();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t at = 0; at < found.size(); ++at) {
      EXPECT_EQ(found[at].name, wanted[at].name);
      EXPECT_TRUE(at::equal(found[at].value, wanted[at].value)) << name << " " << found[at].name;
    }
  }
}

// Weights that are read later have the same values as weights that are read at once.
TEST(QuantizedFolders, PartsCanWait) {
  for (const char* name : {"nf4-double", "int8", "base"}) {
    const WeightCoding coding{.format =
                                  std::string(name) == "base"
                                      ? std::optional(BitsandbytesFormat{CodeType::Fp4, 64, true})
                                      : std::nullopt};
    const io::ModelFolder folder = io::ModelFolder::open(golden() / name);
    nn::DeferredValues values;
    const auto waiting = declare_causal_lm(folder, at::kFloat, at::kCPU, values, coding);
    const auto whole = load_causal_lm(folder, at::kFloat, at::kCPU, coding);
    const std::vector<nn::NamedTensor> wanted = whole->parameters();
    const std::vector<nn::NamedTensor> found = waiting->parameters();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t at = 0; at < found.size(); ++at) {
      ASSERT_TRUE(values.contains(found[at].value)) << found[at].name;
      const int64_t begin = found[at].value.numel() / 3;
      const at::Tensor part =
          at::empty({found[at].value.numel() - begin}, wanted[at].value.options());
      values.read(found[at].value, begin, part);
      EXPECT_TRUE(at::equal(part, wanted[at].value.reshape({-1}).slice(0, begin)))
          << found[at].name;
    }
    const nn::ReadOnUse reading(waiting->units(), values);
    waiting->set_residency(const_cast<nn::ReadOnUse*>(&reading));
    EXPECT_TRUE(at::equal(
        waiting->hidden_states(
            nn::TokenBatch(std::vector<int64_t>{3, 4, 5}, std::vector<int64_t>{0, 1, 2}, {0, 3}),
            {}),
        whole->hidden_states(
            nn::TokenBatch(std::vector<int64_t>{3, 4, 5}, std::vector<int64_t>{0, 1, 2}, {0, 3}),
            {})));
  }
}

TEST(QuantizedFolders, SkippedModulesStayWhole) {
  const auto model = load_causal_lm(
      io::ModelFolder::open(golden() / "base"), at::kFloat, at::kCPU,
      {.format = BitsandbytesFormat{}, .skip_modules = {"down_proj", "model.layers.1.self_attn"}});
  for (nn::Linear* linear : model->block_linears())
    EXPECT_EQ(linear->is_bitsandbytes(),
              linear->name().find("down_proj") == std::string::npos &&
                  linear->name().find("layers.1.self_attn") == std::string::npos)
        << linear->name();
}

TEST(QuantizedFolders, AnotherFormatIsRefused) {
  const io::ModelFolder folder = io::ModelFolder::open(golden() / "nf4");
  for (const BitsandbytesFormat& other :
       {BitsandbytesFormat{CodeType::Fp4, 64, false}, BitsandbytesFormat{CodeType::Nf4, 64, true}})
    EXPECT_THROW(load_causal_lm(folder, at::kFloat, at::kCPU, {.format = other}), ConfigError);
  EXPECT_NO_THROW(load_causal_lm(folder, at::kFloat, at::kCPU, {.format = BitsandbytesFormat{}}));
}

// Writes a model of 44 million weights, which take 88 MB in 16 bits.
void write_large_model(const fs::path& folder) {
  constexpr int64_t kHidden = 256, kFfn = 2048, kVocab = 64, kLayers = 24;
  nlohmann::json config = nlohmann::json::parse(read_file(golden() / "base/config.json"));
  config.update({{"hidden_size", kHidden},
                 {"intermediate_size", kFfn},
                 {"num_hidden_layers", kLayers},
                 {"num_attention_heads", 8},
                 {"num_key_value_heads", 8},
                 {"head_dim", 32},
                 {"vocab_size", kVocab}});
  fs::create_directories(folder);
  write_file_atomic(folder / "config.json", config.dump());
  const at::Tensor some = at::randn({kHidden * 4}).to(at::kBFloat16);
  std::vector<io::TensorSource> sources;
  for (const architecture::ParameterDeclaration& parameter : architecture::declare_parameters(
           families::read_decoder_spec(io::ModelFolder::open(folder)))) {
    io::TensorSource source = device::tensor_source(parameter.name, at::empty({0}, at::kBFloat16));
    source.shape = parameter.shape;
    source.produce = [elements = c10::multiply_integers(parameter.shape),
                      some](const io::ByteSink& sink) {
      const at::Tensor values = some.repeat({elements / some.numel() + 1}).narrow(0, 0, elements);
      sink({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
    };
    sources.push_back(std::move(source));
  }
  io::write_model_weights(folder, std::move(sources));
}

TEST(QuantizedFolders, LoadWithoutTheWholeModel) {
  const testing::TemporaryFolder folder;
  write_large_model(folder.path());
  // The program makes this call too. Without it malloc keeps large blocks that other tests freed,
  // and scatters the tensors among them.
  device::keep_tensor_memory();
  device::PeakMeter meter(at::kCPU);
  const int64_t before_bytes = device::owned_memory_bytes(at::kCPU);
  const auto model = load_causal_lm(io::ModelFolder::open(folder.path()), at::kBFloat16, at::kCPU,
                                    {.format = BitsandbytesFormat{CodeType::Nf4, 64, true}});
  const int64_t grown_bytes = meter.stop().owned_bytes - before_bytes;
  int64_t held_bytes = 0;
  for (const nn::NamedTensor& parameter : model->parameters())
    held_bytes += static_cast<int64_t>(parameter.value.nbytes());
  EXPECT_LT(held_bytes, 25 << 20);
  EXPECT_LT(grown_bytes, 70 << 20) << "16 bits of all are 84 MiB, and codes beside them";
}

// Codes that are written, read, decoded and encoded again are the same byte for byte.
TEST(BitsandbytesExport, GoesThereAndBack) {
  const testing::TemporaryFolder place;
  const auto quiet = [](int64_t, int64_t) {};
  for (const auto& [name, format] : folders()) {
    const fs::path written = place / name, back = place / (name + "-back");
    const io::ModelFolder base = io::ModelFolder::open(golden() / "base");
    write_bitsandbytes_model(base, written, {.format = format}, quiet);
    const io::ModelFolder coded = io::ModelFolder::open(written);
    EXPECT_EQ(read_quantization_config(coded.config())->format->type, format.type);
    const auto loaded = load_causal_lm(coded, at::kFloat);
    expect_logits(*loaded, name);
    write_decoded_model(coded, back, at::kFloat, quiet);
    const auto whole = load_causal_lm(io::ModelFolder::open(back), at::kFloat);
    for (size_t at = 0; at < whole->block_linears().size(); ++at)
      EXPECT_TRUE(
          at::equal(whole->block_linears()[at]->weight(), loaded->block_linears()[at]->values()));
    EXPECT_FALSE(io::ModelFolder::open(back).config().has("quantization_config"));
    EXPECT_THROW(write_bitsandbytes_model(coded, place / "again", {.format = format}, quiet),
                 ConfigError);
    EXPECT_THROW(write_decoded_model(base, place / "again", {}, quiet), ConfigError);
  }
}

// An exported fp32 model has the tensors that transformers writes.
TEST(BitsandbytesExport, WritesTheBytesOfTransformers) {
  const testing::TemporaryFolder place;
  const auto quiet = [](int64_t, int64_t) {};
  for (const auto& [name, format] : folders()) {
    // The base folder holds the fp32 weights that transformers quantised.
    const io::ModelWeights base(io::ModelFolder::open(golden() / "base"));
    std::vector<io::TensorSource> wide;
    for (const std::string& tensor : base.names())
      wide.push_back(
          device::tensor_source(tensor, device::copy_to_tensor(base.require(tensor), at::kFloat)));
    const fs::path source = place / ("wide-" + name);
    fs::create_directories(source);
    io::write_model_weights(source, std::move(wide));
    write_file_atomic(source / "config.json", read_file(golden() / "base/config.json"));
    write_bitsandbytes_model(io::ModelFolder::open(source), place / name, {.format = format},
                             quiet);
    EXPECT_EQ(read_file(place.path() / name / "model.safetensors"),
              read_file(golden() / name / "model.safetensors"))
        << name;
    EXPECT_EQ(
        nlohmann::json::parse(read_file(place.path() / name / "config.json"))
            .at("quantization_config"),
        nlohmann::json::parse(read_file(golden() / name / "config.json")).at("quantization_config"))
        << name;
  }
}

TEST(BitsandbytesExport, FilesOfTensorsGoThereAndBack) {
  const testing::TemporaryFolder place;
  const auto quiet = [](int64_t, int64_t) {};
  const at::Tensor weight = at::randn({9, 35});
  const at::Tensor ids = at::arange(5, at::kLong);
  const at::Tensor vector = at::randn({129});
  io::write_safetensors(place / "a.safetensors",
                        {device::tensor_source("w", weight), device::tensor_source("ids", ids),
                         device::tensor_source("b.vector", vector)});
  for (const auto& [name, format] : folders()) {
    const fs::path coded = place / (name + ".safetensors"),
                   back = place / (name + "-back.safetensors");
    write_bitsandbytes_tensors(place / "a.safetensors", coded, format, quiet);
    write_decoded_tensors(coded, back, at::kFloat, quiet);
    const io::SafetensorsFile file(back);
    ASSERT_EQ(file.tensors().size(), 3U);
    EXPECT_TRUE(
        at::equal(device::copy_to_tensor(file.require("w")),
                  kernels::decode_weight(kernels::encode_weight(weight, format), at::kFloat)));
    EXPECT_TRUE(at::equal(device::copy_to_tensor(file.require("ids")), ids));
    const at::Tensor found = device::copy_to_tensor(file.require("b.vector"));
    EXPECT_EQ(at::equal(found, vector), format.type == CodeType::Int8);
  }
  at::Tensor broken = weight.clone();
  broken[3][4] = NAN;
  io::write_safetensors(place / "bad.safetensors", {device::tensor_source("layer.w", broken)});
  try {
    write_bitsandbytes_tensors(place / "bad.safetensors", place / "none.safetensors", {}, quiet);
    FAIL() << "NaN was taken";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("layer.w"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(place / "none.safetensors"));
}

// Each quantization_config contradicts the weights of the folder.
TEST(QuantizedFolders, WhatConfigSaysMustHold) {
  const testing::TemporaryFolder place;
  fs::copy(golden() / "base", place / "model");
  const auto refusal = [&](const nlohmann::json& quantization) {
    nlohmann::json config = nlohmann::json::parse(read_file(golden() / "base/config.json"));
    config["quantization_config"] = quantization;
    write_file_atomic(place.path() / "model/config.json", config.dump());
    try {
      load_causal_lm(io::ModelFolder::open(place / "model"), at::kFloat);
    } catch (const DataError& error) {
      return std::string(error.sentence());
    }
    return std::string("none");
  };
  EXPECT_NE(refusal({{"quant_method", "gptq"}, {"bits", 4}}).find("`gptq` is not supported"),
            std::string::npos);
  EXPECT_NE(refusal({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}})
                .find("no weight is quantised"),
            std::string::npos);
  EXPECT_NE(refusal({{"quant_method", "bitsandbytes"},
                     {"load_in_4bit", true},
                     {"bnb_4bit_quant_type", "af4"}})
                .find("`af4` is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::models
