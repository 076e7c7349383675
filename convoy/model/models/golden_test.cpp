// SPDX-License-Identifier: Apache-2.0
//
// Compares every family with transformers' values for the same tiny model (tests/golden/models), in
// both spellings of config.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/cache_test.h"
#include "convoy/model/nn/head_loss.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;

// The tolerance is relative to the largest logit. Sums in fp32 have at most 44 terms, and the model
// has 4 blocks.
constexpr double kLogitTolerance = 2e-5;
constexpr double kGradientTolerance = 1e-4;

double relative_error(const at::Tensor& found, const at::Tensor& wanted) {
  if (found.equal(wanted)) return 0;  // both may be 0
  return ((found - wanted).abs().max() / wanted.abs().max()).item<double>();
}

// Makes a batch of `rows`. Row r begins at position `first_positions[r]`, or at 0 without
// positions.
nn::TokenBatch make_batch(const std::vector<at::Tensor>& rows,
                          const std::vector<int64_t>& first_positions = {}) {
  std::vector<int64_t> ids, positions, starts = {0};
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t* row = rows[r].const_data_ptr<int64_t>();
    ids.insert(ids.end(), row, row + rows[r].numel());
    const int64_t first = first_positions.empty() ? 0 : first_positions[r];
    for (int64_t at = 0; at < rows[r].numel(); ++at) positions.push_back(first + at);
    starts.push_back(starts.back() + rows[r].numel());
  }
  return nn::TokenBatch(ids, positions, std::move(starts));
}

at::Tensor logits_of(nn::CausalLm& model, const nn::TokenBatch& batch,
                     const nn::ForwardOptions& options = {}) {
  const at::NoGradGuard no_gradients;
  return nn::head_logits(model, model.hidden_states(batch, options));
}

struct Case {
  std::string name;
  std::string config_file = "config.json";
};

class GoldenModel : public ::testing::TestWithParam<Case> {
 protected:
  GoldenModel() {
    const fs::path source = testing::golden_model(GetParam().name);
    for (const auto& entry : fs::directory_iterator(source))
      fs::copy(entry.path(), copy_ / entry.path().filename());
    fs::copy(source / GetParam().config_file, copy_ / "config.json",
             fs::copy_options::overwrite_existing);
    folder_ = io::ModelFolder::open(copy_.path().string());
    model_ = load_causal_lm(*folder_, at::kFloat);
    const io::SafetensorsFile golden(source / "golden.safetensors");
    rows_ = {device::copy_to_tensor(golden.require("row_0")),
             device::copy_to_tensor(golden.require("row_1"))};
    logits_TV_ = device::copy_to_tensor(golden.require("logits"));
    greedy_ = device::copy_to_tensor(golden.require("greedy"));
    figures_ = io::read_json_file(source / "golden.json");
  }

  // Returns the gradient of each parameter. The loss is the next-token loss summed over both rows.
  std::map<std::string, at::Tensor> gradients(const nn::ForwardOptions& options, double& loss) {
    for (nn::NamedTensor& parameter : model_->parameters())
      parameter.value.mutable_grad() = at::Tensor();
    const at::Tensor hidden_TD = model_->hidden_states(make_batch(rows_), options);
    at::Tensor labels_T = at::cat(rows_).roll(-1);
    labels_T[rows_[0].size(0) - 1] = kernels::kIgnoredLabel;
    labels_T[labels_T.size(0) - 1] = kernels::kIgnoredLabel;
    const std::span labels(labels_T.const_data_ptr<int64_t>(),
                           static_cast<size_t>(labels_T.numel()));
    const at::Tensor sum = nn::head_loss(*model_, hidden_TD, kernels::LabelledTokens(labels));
    sum.backward();
    loss = sum.item<double>();
    std::map<std::string, at::Tensor> found;
    for (const nn::NamedTensor& parameter : model_->parameters())
      found[parameter.name] = parameter.value.grad().clone();
    return found;
  }

  testing::TemporaryFolder copy_;
  std::optional<io::ModelFolder> folder_;
  std::unique_ptr<nn::CausalLm> model_;
  std::vector<at::Tensor> rows_;
  at::Tensor logits_TV_;
  at::Tensor greedy_;
  io::Json figures_;
};

TEST_P(GoldenModel, LogitsOfPackedRowsEqualTransformers) {
  EXPECT_LT(relative_error(logits_of(*model_, make_batch(rows_)), logits_TV_), kLogitTolerance);
  model_->set_requires_grad(true);  // training does not use packed weights
  EXPECT_LT(relative_error(logits_of(*model_, make_batch(rows_)), logits_TV_), kLogitTolerance);
}

TEST_P(GoldenModel, RowsAloneEqualRowsPacked) {
  const at::Tensor alone = at::cat(
      {logits_of(*model_, make_batch({rows_[0]})), logits_of(*model_, make_batch({rows_[1]}))});
  EXPECT_LT(relative_error(alone, logits_TV_), kLogitTolerance);
}

// The rows enter the cache in pieces of different lengths. Each piece has the logits that it has in
// the whole row.
TEST_P(GoldenModel, CachedDecodingEqualsTheFullForward) {
  testing::GrowingCache cache(*model_, 2);
  std::vector<at::Tensor> pieces[2];
  const auto feed = [&](std::vector<int64_t> who, std::vector<int64_t> tokens) {
    std::vector<at::Tensor> parts;
    std::vector<int64_t> positions;
    std::vector<std::pair<int64_t, int64_t>> grown;
    for (size_t i = 0; i < who.size(); ++i) {
      const at::Tensor& row = rows_[who[i]];
      const int64_t begin = cache.length(who[i]);
      parts.push_back(row.narrow(0, begin, tokens[i]));
      positions.push_back(model_->first_position(row.size(0)) + begin);
      grown.emplace_back(who[i], tokens[i]);
    }
    const nn::TokenBatch batch = make_batch(parts, positions);
    cache.grow(grown);
    const at::Tensor logits = logits_of(*model_, batch, {.cache = cache.cache()});
    for (size_t i = 0; i < who.size(); ++i) {
      pieces[who[i]].push_back(logits.narrow(0, batch.rows().starts()[i], tokens[i]));
    }
  };
  feed({0, 1}, {11, 5});
  feed({1, 0}, {2, 9});
  while (cache.length(1) < rows_[1].size(0)) feed({0, 1}, {1, 1});
  while (cache.length(0) < rows_[0].size(0)) feed({0}, {1});
  pieces[0].insert(pieces[0].end(), pieces[1].begin(), pieces[1].end());
  EXPECT_LT(relative_error(at::cat(pieces[0]), logits_TV_), kLogitTolerance);
}

TEST_P(GoldenModel, GreedyContinuationEqualsTransformers) {
  testing::GrowingCache cache(*model_, 1);
  at::Tensor pending = rows_[0].narrow(0, 0, figures_.at("prompt_tokens").get<int64_t>());
  const int64_t first = model_->first_position(pending.size(0) + greedy_.size(0));
  std::vector<int64_t> found;
  while (static_cast<int64_t>(found.size()) < greedy_.size(0)) {
    const nn::TokenBatch batch = make_batch({pending}, {first + cache.length(0)});
    cache.grow({{0, pending.size(0)}});
    const at::Tensor logits = logits_of(*model_, batch, {.cache = cache.cache()});
    pending = logits[-1].argmax().view({1});
    found.push_back(pending.item<int64_t>());
  }
  EXPECT_TRUE(at::equal(at::tensor(found, at::kLong), greedy_));
}

TEST_P(GoldenModel, GradientsEqualTransformers) {
  model_->set_requires_grad(true);
  double loss = 0;
  const auto found = gradients({}, loss);
  EXPECT_NEAR(loss / figures_.at("loss").get<double>(), 1.0, kGradientTolerance);
  const auto& norms = figures_.at("gradient_norms");
  ASSERT_EQ(found.size(), norms.size());
  // Some norms are zero except for rounding: the bias of a key adds the same value to all scores of
  // a query that is not rotated.
  constexpr double kRounding = 1e-6;
  double largest = 0;
  for (const auto& norm : norms) largest = std::max(largest, norm.get<double>());
  for (const auto& [name, norm] : norms.items()) {
    const double wanted = norm.get<double>();
    EXPECT_NEAR(found.at(name).norm().item<double>(), wanted,
                kGradientTolerance * wanted + kRounding * largest)
        << name;
  }
}

TEST_P(GoldenModel, RecomputedBlocksGiveTheSameGradients) {
  model_->set_requires_grad(true);
  double loss = 0;
  double recomputed_loss = 0;
  const auto kept = gradients({}, loss);
  const auto recomputed = gradients({.recompute = nn::Recompute::Blocks}, recomputed_loss);
  EXPECT_EQ(loss, recomputed_loss);
  for (const auto& [name, gradient] : kept)
    EXPECT_LT(relative_error(recomputed.at(name), gradient), 1e-6) << name;
}

// If CONVOY_EXPORT_FOLDER is set, the export is kept for tests/golden/models/check_exports.py.
TEST_P(GoldenModel, ExportLoadsToTheSameModel) {
  const char* kept = std::getenv("CONVOY_EXPORT_FOLDER");
  testing::TemporaryFolder temporary;
  const std::string stem = GetParam().name + (GetParam().config_file == "config.json" ? "" : "-v4");
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const std::string name = stem + (dtype == at::kFloat ? "-fp32" : "-bf16");
    const fs::path folder = (kept ? fs::path(kept) : temporary.path()) / name;
    export_model(*model_, *folder_, folder,
                 {.dtype = dtype, .extent = Extent::TextAlone, .max_shard_bytes = 15'000});
    const io::ModelFolder written = io::ModelFolder::open(folder.string());
    const auto again = load_causal_lm(written, at::kFloat);
    const auto before = model_->parameters();
    const auto after = again->parameters();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].name, after[i].name);
      EXPECT_TRUE(at::equal(before[i].value.to(dtype).to(at::kFloat), after[i].value))
          << after[i].name;
    }
    EXPECT_EQ(again->head_is_tied(), model_->head_is_tied());
    EXPECT_GT(written.weight_file_names().size(), 1u);
    if (dtype == at::kFloat) {
      EXPECT_TRUE(
          at::equal(logits_of(*again, make_batch(rows_)), logits_of(*model_, make_batch(rows_))));
    }
  }
}

// Two correct programs round differently in bf16, so the bound is the difference between
// transformers' bf16 and its fp32 logits.
TEST_P(GoldenModel, Bf16IsAsNearToFp32AsTransformersIs) {
  const auto half = load_causal_lm(*folder_, at::kBFloat16);
  const at::Tensor logits = logits_of(*half, make_batch(rows_));
  EXPECT_EQ(logits.scalar_type(), at::kFloat) << "CPUs do not round the head's sums";
  const io::SafetensorsFile stored(testing::golden_model(GetParam().name) / "bf16.safetensors");
  const at::Tensor theirs_TV = device::copy_to_tensor(stored.require("logits")).to(at::kFloat);
  const at::Tensor ours_TV = logits.to(at::kFloat);
  const double rounding = (theirs_TV - logits_TV_).norm().item<double>();
  EXPECT_LT((ours_TV - logits_TV_).norm().item<double>(), 1.2 * rounding);
  // The difference of two independent roundings is the root of two times as large as each.
  EXPECT_LT((ours_TV - theirs_TV).norm().item<double>(), 1.6 * rounding);
}

INSTANTIATE_TEST_SUITE_P(
    Families, GoldenModel,
    ::testing::Values(
        Case{"llama"}, Case{"llama", "config.v4.json"}, Case{"llama-biased"},
        Case{"llama-biased", "config.v4.json"}, Case{"qwen2"}, Case{"qwen2", "config.v4.json"},
        Case{"qwen2-window"}, Case{"qwen2-window", "config.v4.json"}, Case{"qwen3"},
        Case{"qwen3", "config.v4.json"}, Case{"qwen3-yarn"}, Case{"qwen3-yarn", "config.v4.json"},
        Case{"llama-yarn"}, Case{"llama-yarn", "config.v4.json"}, Case{"gemma3"},
        Case{"gemma3", "config.v4.json"}, Case{"gemma3-nested"}, Case{"mistral"},
        Case{"mistral", "config.v4.json"}, Case{"mistral-nemo"},
        Case{"mistral-nemo", "config.v4.json"}, Case{"smollm3"}, Case{"smollm3", "config.v4.json"},
        Case{"smollm3-window"}, Case{"smollm3-window", "config.v4.json"}, Case{"granite"},
        Case{"granite", "config.v4.json"}, Case{"seed_oss"}, Case{"seed_oss", "config.v4.json"},
        Case{"olmo2"}, Case{"olmo2", "config.v4.json"}, Case{"olmo3"},
        Case{"olmo3", "config.v4.json"}, Case{"phi3"}, Case{"phi3", "config.v4.json"},
        Case{"phi3-window"}, Case{"phi3-window", "config.v4.json"}, Case{"phi3-long"},
        Case{"phi3-long", "config.v4.json"}, Case{"glm"}, Case{"glm", "config.v4.json"},
        Case{"glm4"}, Case{"glm4", "config.v4.json"}, Case{"ministral3"},
        Case{"ministral3", "config.v4.json"}, Case{"ministral3-nested"}, Case{"gemma2"},
        Case{"gemma2", "config.v4.json"}, Case{"gemma2-untied"},
        Case{"gemma2-untied", "config.v4.json"}, Case{"qwen3_5"}, Case{"qwen3_5", "config.v4.json"},
        Case{"qwen3_5-tied"}, Case{"qwen3_5-tied", "config.v4.json"}, Case{"qwen3_5-nested"},
        Case{"gemma4"}, Case{"gemma4", "config.v4.json"}, Case{"gemma4-keys"},
        Case{"gemma4-keys", "config.v4.json"}, Case{"gemma4-nested"}, Case{"gemma4-unified"},
        Case{"gemma4-unified", "config.v4.json"}, Case{"gemma4-unified-nested"},
        Case{"muse_glimmer"}, Case{"muse_glimmer", "config.v4.json"}, Case{"muse_glimmer-tied"},
        Case{"muse_glimmer-tied", "config.v4.json"}, Case{"muse_glimmer-nested"}, Case{"gemma"},
        Case{"gemma", "config.v4.json"}),
    [](const auto& param_info) {
      std::string name =
          param_info.param.name + (param_info.param.config_file == "config.json" ? "_v5" : "_v4");
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace convoy::models
