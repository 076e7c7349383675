// SPDX-License-Identifier: Apache-2.0
//
// The estimate from a config.json equals the plan of a run of that model: both use one formula, and
// get its counts in two ways.
#include "convoy/model/sizing/memory_estimate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "convoy/apps/recipes/memory/memory_plan.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/nn/decoder.h"

namespace convoy::recipes {
namespace {

// The keys of config.json that a family needs beside the sizes.
const std::map<std::string, std::string> kMore = {
    {"llama", R"(, "attention_bias": true, "mlp_bias": true)"},
    {"qwen2", R"(, "tie_word_embeddings": true)"},
    {"qwen3", R"(, "head_dim": 24)"},
    {"muse_glimmer_text", R"(, "head_dim": 24)"},
    {"qwen3_5_text", R"(, "head_dim": 24, "linear_num_key_heads": 3, "linear_num_value_heads": 6,
                        "linear_key_head_dim": 8, "linear_value_head_dim": 10,
                        "layer_types": ["linear_attention", "full_attention", "linear_attention"])"},
    {"gemma4_text", R"(, "head_dim": 24, "global_head_dim": 32, "num_kv_shared_layers": 1,
                        "use_double_wide_mlp": true, "hidden_size_per_layer_input": 16,
                        "vocab_size_per_layer_input": 1001,
                        "layer_types": ["sliding_attention", "full_attention", "full_attention"])"},
    {"gemma4_unified_text", R"(, "head_dim": 24, "global_head_dim": 32, "attention_k_eq_v": true,
                                "num_global_key_value_heads": 1)"},
};

io::JsonReader config_of(const std::string& family) {
  const auto more = kMore.find(family);
  const std::string text = fmt::format(
      R"({{"model_type": "{}", "hidden_size": 96, "intermediate_size": 200,
           "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
           "vocab_size": 1001{}}})",
      family, more == kMore.end() ? "" : more->second);
  return {io::parse_json(text, "config.json"), "config.json"};
}

// Makes a model. DoRA starts from the norms of weights, so it needs their values.
std::unique_ptr<nn::CausalLm> model_of(const architecture::DecoderSpec& spec,
                                       const std::string& dtype, bool has_values) {
  const auto options = at::TensorOptions().dtype(device::parse_dtype(dtype));
  return std::make_unique<nn::Decoder>(
      spec, [&](const architecture::ParameterDeclaration& declared) {
        return has_values ? at::ones(declared.shape, options)
                          : device::tensor_without_memory(declared.shape, options);
      });
}

TEST(MemoryEstimate, IsThePlanOfTheModel) {
  for (const families::Family& family : families::all_families()) {
    if (family.layout == families::TextModel::Nested) continue;  // the same text model
    const architecture::DecoderSpec shape = family.read_spec(config_of(family.model_type));
    for (const std::string dtype : {"fp32", "bf16"}) {
      for (const std::string mode : {"full", "lora", "dora"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", family.model_type, dtype, mode));
        const auto model = model_of(shape, dtype, /*has_values=*/mode == "dora");
        std::optional<adapters::LoraModel> lora;
        adapters::LoraConfig adapter;
        adapter.r = 7;
        adapter.use_dora = mode == "dora";
        if (mode == "full")
          model->set_requires_grad(true);
        else
          lora = adapters::LoraModel::create(*model, adapter, 0);
        const sizing::EstimateRequest request{.mode = mode == "dora" ? "lora" : mode,
                                              .dtype = dtype,
                                              .lora_rank = 7,
                                              .dora = mode == "dora",
                                              .drops_dora = true,
                                              .ranks = 3,
                                              .batch_rows = 5,
                                              .row_tokens = 40,
                                              .keep_whole_below = 100,
                                              .hardware = sizing::Hardware::Cpu};
        int64_t elements = 0;
        for (const nn::NamedTensor& parameter : model->parameters())
          elements += parameter.value.numel();
        EXPECT_EQ(sizing::count_parameters(shape), elements);
        const sizing::TrainingShape counted = training_shape(*model, true);
        EXPECT_EQ(sizing::training_shape(shape, request), counted);
        for (const settings::StrategyFacts& strategy : settings::strategies_of_processes()) {
          sizing::EstimateRequest under = request;
          under.sharing = sizing::sharing_of(strategy);
          const sizing::MemoryPlan estimate = sizing::estimate_memory(shape, under);
          const sizing::MemoryPlan plan =
              sizing::plan_memory({.shape = counted,
                                   .ranks = 3,
                                   .keep_whole_below = 100,
                                   .micro_batch_tokens = 200,
                                   .program_bytes = estimate.program_bytes},
                                  under.sharing);
          EXPECT_EQ(estimate, plan)
              << strategy.name << ": " << estimate.text() << "; " << plan.text();
        }
      }
    }
  }
}

}  // namespace
}  // namespace convoy::recipes
