// SPDX-License-Identifier: Apache-2.0
//
// Tests adapters over quantised bases: the merged model equals the served model, and adapters that
// do not fit are refused.
#include <gtest/gtest.h>

#include "convoy/apps/recipes/model_files/compared_loss.h"
#include "convoy/apps/recipes/model_files/merge_adapter.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/base/error.h"
#include "convoy/model/models/bitsandbytes_export.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using io::Json;
using testing::golden_folder;
using testing::read_tensors;
using testing::Tensors;

const Log kQuiet(LogLevel::Quiet);

class QuantizedMerge : public ::testing::Test {
 protected:
  QuantizedMerge() { testing::make_model(model()); }

  fs::path model() const { return folder_ / "model"; }
  fs::path adapter(const std::string& kind = "lora") const {
    return golden_folder() / "train/qwen2" / kind;
  }
  fs::path output() const { return folder_ / "merged"; }

  // Returns the folder of model() quantised to nf4.
  fs::path coded_folder() const {
    const fs::path folder = folder_ / "coded";
    if (!fs::exists(folder))
      models::write_bitsandbytes_model(io::ModelFolder::open(model()), folder,
                                       weight_coding("nf4", /*double_quant=*/true),
                                       [](int64_t, int64_t) {});
    return folder;
  }
  // Returns the folder of a model like model() with other weights.
  fs::path other_model() const {
    const fs::path folder = folder_ / "other";
    testing::make_model(folder);
    Tensors tensors = read_tensors(folder / "model.safetensors");
    at::manual_seed(5);
    for (auto& [name, value] : tensors)
      if (name.ends_with("_proj.weight")) value = at::randn_like(value) * 0.1;
    testing::write_tensors(folder / "model.safetensors", tensors);
    return folder;
  }

  Tensors merge(const fs::path& of, settings::MergeFlags flags,
                const std::string& kind = "lora") const {
    fs::remove_all(output());
    settings::ModelSourceFlags source;
    source.model = of.string();
    source.adapter = adapter(kind).string();
    flags.output = output().string();
    merge_adapter(source, flags, {}, kQuiet);
    return read_tensors(output() / "model.safetensors");
  }
  Json record() const { return io::read_json_file(output() / "convoy_merge.json"); }
  std::string refusal(const fs::path& of, const settings::MergeFlags& flags) const {
    try {
      merge(of, flags);
    } catch (const Error& error) {
      EXPECT_FALSE(fs::exists(output()));
      return error.sentence();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  }

  // Returns the hidden states of a few rows of text, in fp32.
  at::Tensor hidden_states(const ModelRequest& request) const {
    const at::NoGradGuard no_grad;
    const LoadedModel loaded = load_model(request, kQuiet);
    std::vector<int64_t> ids, positions;
    for (int64_t at = 0; at < 24; ++at) {
      ids.push_back(1 + at * 7 % 50);
      positions.push_back(at);
    }
    return loaded.model->hidden_states(nn::TokenBatch(ids, positions, {0, 24}), {});
  }

  convoy::testing::TemporaryFolder folder_;
};

settings::MergeFlags flags_of(const std::string& base, const std::string& quantization = "none",
                              const std::string& base_model = "") {
  settings::MergeFlags flags;
  flags.base = base;
  flags.base_model = base_model;
  flags.held.quantization = quantization;
  flags.held.double_quant = quantization == "nf4";
  return flags;
}

TEST_F(QuantizedMerge, DequantizedIsWhatWasServed) {
  for (const std::string kind : {"lora", "dora"})
    for (const fs::path& of : {model(), coded_folder()}) {
      settings::MergeFlags flags = flags_of("dequantized", of == model() ? "nf4" : "none");
      flags.dtype = "fp32";
      const Tensors merged = merge(of, flags, kind);
      const at::Tensor served = hidden_states(
          {.name = of.string(),
           .adapter = adapter(kind).string(),
           .coding = of == model() ? weight_coding("nf4", true) : models::WeightCoding()});
      const at::Tensor found = hidden_states({.name = output().string()});
      EXPECT_TRUE(at::allclose(found, served, 1e-4, 1e-5))
          << kind << ": " << (found - served).abs().max().item<float>();
      const at::Tensor full =
          hidden_states({.name = model().string(), .adapter = adapter(kind).string()});
      EXPECT_FALSE(at::allclose(found, full, 1e-3, 1e-4)) << "nothing was quantised";
      for (const auto& [name, value] : merged) EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
      EXPECT_EQ(record().at("merge_base"), "dequantized");
      const Json loss = record().at("loss");
      EXPECT_NEAR(loss.at("after").get<double>() / loss.at("before").get<double>(), 1, 1e-4);
      EXPECT_FALSE(io::read_json_file(output() / "config.json").contains("quantization_config"));
    }
}

TEST_F(QuantizedMerge, FullIsTheMergeOfTheModelThatWasQuantized) {
  const Tensors wanted = merge(model(), {});
  EXPECT_EQ(record().at("merge_base"), "full");
  const std::string base = model().string();
  for (const auto& [of, flags] : {std::pair{model(), flags_of("full", "nf4")},
                                  std::pair{coded_folder(), flags_of("full", "none", base)}}) {
    const Tensors found = merge(of, flags);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [name, value] : wanted) EXPECT_TRUE(found.at(name).equal(value)) << name;
    EXPECT_EQ(record().at("merge_base"), "full");
    EXPECT_EQ(record().at("base_model"), base);
    EXPECT_NE(record().at("quantization").get<std::string>().find("nf4"), std::string::npos);
    const Json loss = record().at("loss");
    EXPECT_NE(loss.at("after"), loss.at("before")) << "the error of quantising is gone";
  }
}

TEST_F(QuantizedMerge, TheBaseMustBeChosen) {
  EXPECT_NE(refusal(model(), flags_of("auto", "nf4")).find("--base dequantized"),
            std::string::npos);
  EXPECT_NE(refusal(coded_folder(), flags_of("auto")).find("--base full"), std::string::npos);
  EXPECT_NE(refusal(model(), flags_of("dequantized")).find("--quantization"), std::string::npos);
  EXPECT_NE(refusal(coded_folder(), flags_of("full")).find("--base-model"), std::string::npos);
  EXPECT_NE(refusal(model(), flags_of("full", "none", "x")).find("--base-model"),
            std::string::npos);
  EXPECT_NE(refusal(coded_folder(), flags_of("dequantized", "none", "x")).find("--base-model"),
            std::string::npos);
}

TEST_F(QuantizedMerge, AModelThatWasNotQuantizedFromIsRefused) {
  const std::string said =
      refusal(coded_folder(), flags_of("full", "none", other_model().string()));
  EXPECT_NE(said.find("differs from the quantised weight"), std::string::npos) << said;
  EXPECT_NE(said.find("_proj"), std::string::npos) << said;
  const std::string coded =
      refusal(coded_folder(), flags_of("full", "none", coded_folder().string()));
  EXPECT_NE(coded.find("needs weights in 16 bits"), std::string::npos) << coded;
}

TEST_F(QuantizedMerge, LossesAreToldOnTheRowsThatAreGiven) {
  settings::MergeFlags flags = flags_of("dequantized", "nf4");
  flags.data = (golden_folder() / "train/completions.jsonl").string();
  merge(model(), flags);
  const Json loss = record().at("loss");
  EXPECT_EQ(loss.at("rows"), flags.data);
  const double own = loss.at("before");
  flags.data.clear();
  merge(model(), flags);
  EXPECT_NE(record().at("loss").at("before").get<double>(), own);
  EXPECT_EQ(record().at("loss").at("rows"), "a built-in text");
}

}  // namespace
}  // namespace convoy::recipes
