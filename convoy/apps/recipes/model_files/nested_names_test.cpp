// SPDX-License-Identifier: Apache-2.0
//
// Adapters of checkpoints that also see have the tensors that PEFT gives them on transformers'
// classes of the whole models (tests/golden/adapters/nested_names.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "convoy/apps/recipes/model_test.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/registry.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using testing::golden_folder;

class NestedNames : public ::testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<nn::CausalLm> load() {
    return models::load_causal_lm(
        io::ModelFolder::open((golden_folder() / "models" / GetParam()).string()), at::kFloat);
  }
  static std::set<std::string> names_of_peft() {
    return io::read_json_file(golden_folder() / "adapters/nested_names.json")
        .at(GetParam())
        .get<std::set<std::string>>();
  }
};

TEST_P(NestedNames, AreThoseOfPeft) {
  const auto model = load();
  const convoy::testing::TemporaryFolder folder;
  const auto lora = adapters::LoraModel::create(*model, {}, 1);
  lora.save(folder.path(), "base");
  std::set<std::string> found;
  for (const auto& [name, value] :
       testing::read_tensors(folder.path() / "adapter_model.safetensors"))
    found.insert(name);
  EXPECT_EQ(found, names_of_peft());
}

// A file with PEFT's names reaches every map of the model: what is written from it is the same.
TEST_P(NestedNames, ArePutWhereTheyBelong) {
  const convoy::testing::TemporaryFolder made, written;
  {
    const auto model = load();
    adapters::LoraModel::create(*model, {}, 1).save(made.path(), "base");
  }
  testing::Tensors values;
  for (const auto& [name, value] : testing::read_tensors(made.path() / "adapter_model.safetensors"))
    values[name] = at::randn(value.sizes());
  testing::write_tensors(made.path() / "adapter_model.safetensors", values);
  const auto model = load();
  const auto lora = adapters::LoraModel::load(*model, made.path());
  EXPECT_EQ(lora.adapted().size(), model->block_linears().size());
  lora.save(written.path(), "base");
  const auto again = testing::read_tensors(written.path() / "adapter_model.safetensors");
  ASSERT_EQ(again.size(), values.size());
  for (const auto& [name, value] : values) EXPECT_TRUE(again.at(name).equal(value)) << name;
}

INSTANTIATE_TEST_SUITE_P(Models, NestedNames,
                         ::testing::Values("gemma3-nested", "ministral3-nested", "qwen3_5-nested",
                                           "gemma4-nested", "gemma4-unified-nested",
                                           "muse_glimmer-nested"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace convoy::recipes
