// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/served_adapters.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/adapters/decoder_test.h"
#include "convoy/model/adapters/lora_model.h"
#include "files/temporary_folder.h"

namespace convoy::adapters {
namespace {

using convoy::testing::TemporaryFolder;

// Saves an adapter that changes the model's output.
void save_adapter(const TemporaryFolder& folder, LoraConfig config, uint64_t seed) {
  const auto model = testing::tiny_decoder();
  const LoraModel lora = LoraModel::create(*model, std::move(config), seed);
  const at::NoGradGuard no_grad;
  at::manual_seed(seed);
  for (const nn::NamedTensor& parameter : lora.parameters())
    if (parameter.name.find("lora_B") != std::string::npos) {
      at::Tensor value = parameter.value;
      value.normal_(0, 0.5);
    }
  lora.save(folder.path(), "tiny");
}

at::Tensor merged_logits(const TemporaryFolder& folder) {
  const auto model = testing::tiny_decoder();
  LoraModel lora = LoraModel::load(*model, folder.path());
  lora.merge();
  return testing::logits_of(*model);
}

// The batch of logits_of() has rows of 3 and 2 tokens.
TEST(ServedAdapters, TokensGoThroughTheirOwnAdapterAsIfItWereMerged) {
  TemporaryFolder plain;
  TemporaryFolder dora;
  LoraConfig config;
  config.r = 2;
  config.alpha = 4;
  save_adapter(plain, config, 5);
  config.use_dora = true;
  config.all_linear = false;
  config.target_names = {"q_proj", "down_proj"};
  save_adapter(dora, config, 6);
  const at::Tensor none = testing::logits_of(*testing::tiny_decoder());
  const std::vector<at::Tensor> wanted = {none, merged_logits(plain), merged_logits(dora)};
  EXPECT_GT((wanted[1] - none).abs().max().item<double>(), 0.01);
  EXPECT_GT((wanted[2] - none).abs().max().item<double>(), 0.01);

  const auto model = testing::tiny_decoder();
  {
    ServedAdapters served(*model, {plain.path(), dora.path()});
    EXPECT_EQ(served.size(), 2);
    for (int64_t first = 0; first <= 2; ++first) {
      for (int64_t second = 0; second <= 2; ++second) {
        served.set_tokens({{first, 3}, {second, 2}});
        const at::Tensor found = testing::logits_of(*model);
        const at::Tensor expected =
            at::cat({wanted[first].narrow(0, 0, 3), wanted[second].narrow(0, 3, 2)});
        EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-5)) << first << " " << second;
      }
    }
  }
  EXPECT_TRUE(at::equal(testing::logits_of(*model), none));  // the adapters no longer apply
}

TEST(ServedAdapters, AnAttachedAdapterIsTakenOver) {
  TemporaryFolder folder;
  LoraConfig config;
  config.r = 2;
  save_adapter(folder, config, 5);
  const auto model = testing::tiny_decoder();
  const at::Tensor none = testing::logits_of(*model);
  const LoraModel attached = LoraModel::load(*model, folder.path());
  const at::Tensor with = testing::logits_of(*model);
  ServedAdapters served(*model, attached);
  for (const int64_t adapter : {1, 0}) {
    served.set_tokens({{adapter, 5}});
    EXPECT_TRUE(at::equal(testing::logits_of(*model), adapter == 1 ? with : none)) << adapter;
  }
}

TEST(ServedAdapters, WholeModulesAreRefused) {
  TemporaryFolder folder;
  LoraConfig config;
  config.modules_to_save = {"lm_head"};
  save_adapter(folder, config, 5);
  const auto model = testing::tiny_decoder();
  EXPECT_THROW(ServedAdapters(*model, {folder.path()}), ConfigError);
}

}  // namespace
}  // namespace convoy::adapters
