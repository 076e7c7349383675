// SPDX-License-Identifier: Apache-2.0
//
// Joins the projections of models of every family on the simulated device: a step of generation
// gives the same hidden states as with separate projections.
#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/cache_test.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class JoinedProjections : public ::testing::Test {
 protected:
  void SetUp() override { simulated::install(1); }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }
};

std::vector<fs::path> models_of_all_families() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(testing::golden_folder() / "models"))
    if (fs::exists(entry.path() / "config.json") && fs::exists(entry.path() / "model.safetensors"))
      folders.push_back(entry.path());
  return folders;
}

std::unique_ptr<nn::CausalLm> on_device(const fs::path& folder) {
  auto model = models::load_causal_lm(io::ModelFolder::open(folder.string()), at::kFloat,
                                      simulated::device(0));
  model->set_requires_grad(false);
  return model;
}

// Returns the hidden states of two rows: of prompts with 5 and 3 tokens, and then of one more token
// in each row.
at::Tensor states_of(nn::CausalLm& model) {
  const at::NoGradGuard no_grad;
  testing::GrowingCache cache(model, 2);
  const auto pass = [&](const std::vector<int64_t>& ids, const std::vector<int64_t>& positions,
                        std::vector<int64_t> starts) {
    cache.grow({{0, starts[1]}, {1, starts[2] - starts[1]}});
    return model
        .hidden_states(nn::TokenBatch(ids, positions, std::move(starts), model.device()),
                       {.cache = cache.cache()})
        .cpu();
  };
  const at::Tensor prompts = pass({1, 5, 2, 7, 3, 4, 4, 6}, {0, 1, 2, 3, 4, 0, 1, 2}, {0, 5, 8});
  return at::cat({prompts, pass({9, 8}, {5, 3}, {0, 1, 2})});
}

// Joins the projections of one of two models, applies `change` to both, and compares their states
// and parameters.
void expect_same_states(const fs::path& folder, void (*change)(nn::CausalLm&), double tolerance) {
  const auto apart = on_device(folder), joined = on_device(folder);
  joined->join_projections();
  for (nn::CausalLm* model : {apart.get(), joined.get()}) change(*model);
  const at::Tensor wanted = states_of(*apart), found = states_of(*joined);
  EXPECT_LT(((found - wanted).abs().max() / wanted.abs().max()).item<double>(), tolerance)
      << folder;
  const std::vector<nn::NamedTensor> parameters = joined->parameters(),
                                     others = apart->parameters();
  ASSERT_EQ(parameters.size(), others.size());
  for (size_t at = 0; at < parameters.size(); ++at) {
    EXPECT_EQ(parameters[at].name, others[at].name);
    if (!others[at].value.is_meta()) {
      EXPECT_TRUE(at::equal(parameters[at].value.cpu(), others[at].value.cpu())) << others[at].name;
    }
  }
}

TEST_F(JoinedProjections, ChangeNoFamilysStates) {
  ASSERT_GE(models_of_all_families().size(), 5U);
  for (const fs::path& folder : models_of_all_families())
    expect_same_states(
        folder, [](nn::CausalLm&) {}, 1e-5);
}

TEST_F(JoinedProjections, AreQuantisedLikeTheirParts) {
  for (const fs::path& folder : models_of_all_families())
    for (auto* const quantize :
         {+[](nn::CausalLm& model) { recipes::quantize_linears(model, "int8"); },
          +[](nn::CausalLm& model) { recipes::quantize_linears(model, "int4"); }})
      expect_same_states(folder, quantize, 1e-5);
}

TEST_F(JoinedProjections, TakeAdaptersOfTheirParts) {
  for (const fs::path& folder : models_of_all_families())
    for (const bool dora : {false, true}) {
      const auto apart = on_device(folder), joined = on_device(folder);
      joined->join_projections();
      std::vector<at::Tensor> states;
      for (nn::CausalLm* model : {apart.get(), joined.get()}) {
        adapters::LoraConfig config;
        config.r = 2;
        config.use_dora = dora;
        config.all_linear = true;
        const auto lora = adapters::LoraModel::create(*model, config, 3);
        const at::NoGradGuard no_grad;
        for (const auto& adapted : lora.adapted()) {
          at::Tensor b_OR = adapted.lora->b();
          b_OR.copy_(at::linspace(-0.3, 0.4, b_OR.numel()).view(b_OR.sizes()));
        }
        states.push_back(states_of(*model));
      }
      EXPECT_LT(((states[1] - states[0]).abs().max() / states[0].abs().max()).item<double>(), 1e-5)
          << folder << dora;
    }
}

}  // namespace
}  // namespace convoy
