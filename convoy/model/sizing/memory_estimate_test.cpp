// SPDX-License-Identifier: Apache-2.0
//
// Tests the counts of known models, and the bytes of quantised weights.
// apps/recipes/memory/memory_estimate_test.cpp tests that the estimate equals the plan of a run.
#include "convoy/model/sizing/memory_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/model/sizing/known_models.h"
#include "convoy/model/sizing/training_request.h"

namespace convoy::sizing {
namespace {

// The numbers of parameters on the hub's pages, in billions.
TEST(KnownModels, HaveTheParametersOfTheHub) {
  const std::pair<const char*, double> models[] = {
      {"Qwen/Qwen2.5-0.5B-Instruct", 0.494},
      {"Qwen/Qwen2.5-7B", 7.616},
      {"Qwen/Qwen2.5-14B-Instruct", 14.770},
      {"meta-llama/Llama-3.1-8B", 8.030},
      {"meta-llama/Llama-3.1-70B-Instruct", 70.554},
      {"google/gemma-3-27b-it", 27.009},
      {"google/gemma-2b-it", 2.506},
      {"google/gemma-1.1-7b-it", 8.538},
      {"google/gemma-2-2b-it", 2.614},
      {"google/gemma-2-9b", 9.242},
      {"google/gemma-2-27b-it", 27.227},
      {"Qwen/Qwen2.5-3B", 3.086},
      {"Qwen/Qwen2.5-72B-Instruct", 72.706},
      {"Qwen/Qwen3-0.6B", 0.596},
      {"Qwen/Qwen3-1.7B-Base", 1.721},
      {"Qwen/Qwen3-4B-Instruct-2507", 4.022},
      {"Qwen/Qwen3-8B", 8.191},
      {"Qwen/Qwen3-14B", 14.768},
      {"Qwen/Qwen3-32B", 32.762},
      {"HuggingFaceTB/SmolLM3-3B", 3.075},
      {"meta-llama/Llama-3.2-3B", 3.213},
      {"microsoft/phi-4", 14.660},
      {"microsoft/Phi-4-mini-instruct", 3.836},
      {"ibm-granite/granite-3.3-2b-instruct", 2.534},
      {"ibm-granite/granite-3.1-8b-base", 8.171},
      {"mistralai/Mistral-Small-24B-Base-2501", 23.572},
      {"allenai/OLMo-2-0425-1B", 1.485},
      {"google/gemma-3-1b-it", 1.000},
      {"allenai/Olmo-3-7B-Think", 7.298},
      {"allenai/Olmo-3-1125-32B", 32.234}};
  for (const auto& [name, billions] : models) {
    const auto model = known_model(name);
    ASSERT_TRUE(model.has_value()) << name;
    EXPECT_NEAR(static_cast<double>(count_parameters(*model)) / 1e9, billions, 0.002) << name;
  }
  // The known sizes are rounded to a tenth.
  const std::pair<const char*, double> rounded[] = {{"allenai/OLMo-2-1124-7B-Instruct", 7.3},
                                                    {"allenai/OLMo-2-1124-13B", 13.7},
                                                    {"allenai/OLMo-2-0325-32B", 32.2},
                                                    {"microsoft/Phi-3-mini-4k-instruct", 3.8},
                                                    {"zai-org/GLM-4-9B-0414", 9.4},
                                                    {"mistralai/Ministral-3-3B-Base-2512", 3.4},
                                                    {"mistralai/Ministral-3-14B-Base-2512", 13.5},
                                                    {"ByteDance-Seed/Seed-OSS-36B-Instruct", 36.2},
                                                    {"google/gemma-4-31B-it", 30.7}};
  for (const auto& [name, billions] : rounded) {
    const auto model = known_model(name);
    ASSERT_TRUE(model.has_value()) << name;
    EXPECT_NEAR(static_cast<double>(count_parameters(*model)) / 1e9, billions, 0.05) << name;
  }
  // These numbers are what llama-bench prints for files without the head for multi-token
  // prediction.
  for (const char* name : {"google/gemma-2-2b", "google/gemma-3-1b-it", "google/gemma-4-E2B-it",
                           "google/gemma-4-31B-it", "meta-models/Muse-Glimmer-30B"})
    EXPECT_EQ(known_model(name)->norms, architecture::kNormsAround) << name;
  EXPECT_EQ(count_parameters(*known_model("Qwen/Qwen3.5-0.8B")), 752'393'024);
  // Files of E2B and E4B also hold the maps of keys and values that no layer reads: 20 layers of
  // 256 or 512 features by 1536, and 18 layers of 512 or 1024 features by 2560.
  const std::pair<const char*, double> of_llama_bench[] = {{"google/gemma-4-E2B-it", 4.65 - 0.019},
                                                           {"google/gemma-4-E4B-it", 7.52 - 0.055},
                                                           {"google/gemma-4-12B-it", 11.91},
                                                           {"Qwen/Qwen3.5-2B-Base", 1.88},
                                                           {"Qwen/Qwen3.5-4B", 4.21},
                                                           {"Qwen/Qwen3.5-9B", 8.95},
                                                           {"Qwen/Qwen3.5-27B", 26.90}};
  for (const auto& [name, billions] : of_llama_bench)
    EXPECT_NEAR(static_cast<double>(count_parameters(*known_model(name))) / 1e9, billions, 0.005)
        << name;
  EXPECT_EQ(known_model("Qwen/Qwen3.5-9B")->num_layers_with(architecture::TokenMixer::Attention),
            8);
  // As transformers counts Gemma4UnifiedForCausalLM of these sizes, with its layers' 48 numbers.
  EXPECT_EQ(count_parameters(*known_model("google/gemma-4-12B")), 11'907'350'272 + 48);
  // The name's 30 billion include the image tower of 50 layers.
  EXPECT_NEAR(
      static_cast<double>(count_parameters(*known_model("meta-models/Muse-Glimmer-30B"))) / 1e9,
      27.855, 0.001);
  EXPECT_FALSE(known_model("meta-models/Muse-Glimmer-30B-assistant").has_value());
  EXPECT_FALSE(known_model("Qwen/Qwen3.5-35B-A3B").has_value());
  EXPECT_FALSE(known_model("Qwen/Qwen2.5-70B").has_value());
  EXPECT_FALSE(known_model("microsoft/Phi-3-mini-128k-instruct").has_value());
  EXPECT_EQ(known_model("microsoft/Phi-3-mini-4k-instruct")->max_positions, 4096);
  EXPECT_EQ(known_model("Qwen/Qwen2.5-7B")->max_positions, 32768);
  EXPECT_EQ(known_model("Qwen/Qwen3-8B-Base")->max_positions, 32768);
  EXPECT_EQ(known_model("microsoft/Phi-4-reasoning-plus")->max_positions, 32768);
  EXPECT_FALSE(known_model("microsoft/Phi-4-multimodal-instruct").has_value());
  EXPECT_FALSE(known_model("microsoft/Phi-4-mini-flash-reasoning").has_value());
  EXPECT_FALSE(known_model("someone/qwen2.5-7bx").has_value());
}

// Returns the number of weights in a block's linear maps, which are the weights that are quantised.
int64_t block_weights(const architecture::DecoderSpec& model) {
  const int64_t query = model.num_heads * model.head_dim;
  const int64_t key = model.num_kv_heads * model.head_dim;
  return model.num_layers() * model.hidden_size * (2 * query + 2 * key + 3 * model.ffn_size);
}

TEST(MemoryEstimate, FourBitWeightsTakeTheirValuesAndScales) {
  const auto model = *known_model("meta-llama/Llama-3.1-8B");
  EstimateRequest request{.mode = "lora"};
  const int64_t whole = estimate_memory(model, request).weight_bytes;
  request.mode = "qlora";
  const int64_t single = estimate_memory(model, request).weight_bytes;
  request.double_quant = true;
  const int64_t twice = estimate_memory(model, request).weight_bytes;
  const auto weights = static_cast<double>(block_weights(model));
  EXPECT_NEAR(static_cast<double>(whole - single), weights * (2 - 0.5 - 4.0 / 64), 1e6);
  EXPECT_NEAR(static_cast<double>(single - twice),
              weights * (4.0 / 64 - (1.0 / 64 + 4.0 / 64 / 256)), 1e6)
      << "0.127 bits a weight instead of 0.5";
  request = {.mode = "lora", .quantization = "int8"};
  EXPECT_NEAR(static_cast<double>(whole - estimate_memory(model, request).weight_bytes), weights,
              weights * 0.001);
}

TEST(MemoryEstimate, GrowsWithRowsAndShrinksByRecomputation) {
  const auto model = *known_model("Qwen/Qwen2.5-7B");
  EstimateRequest request{.batch_rows = 1, .row_tokens = 1024};
  const int64_t one = estimate_memory(model, request).activation_bytes;
  request.batch_rows = 3;
  EXPECT_EQ(estimate_memory(model, request).activation_bytes, 3 * one);
  request.recompute = architecture::Recompute::Selective;
  const int64_t selective = estimate_memory(model, request).activation_bytes;
  EXPECT_NEAR(static_cast<double>(selective) / static_cast<double>(3 * one), 0.70, 0.05)
      << "4.4 to 3.0 MB a token, and the block at work";
  request.recompute = architecture::Recompute::Blocks;
  EXPECT_LT(estimate_memory(model, request).activation_bytes, one);
}

// Published figures for one GPU: torchtune on an RTX 4090 (Llama-3.1 8B: LoRA 16.2 GiB, QLoRA 7.4
// GiB), and LLaMA-Factory's table (7B: LoRA in 16 bits 16 GB, in 4 bits 6 GB, all weights in fp32
// 120 GB).
TEST(MemoryEstimate, IsNearTheFiguresOfOthers) {
  const auto gib = [](const architecture::DecoderSpec& model, const EstimateRequest& request) {
    return static_cast<double>(estimate_memory(model, request).total_bytes()) / (1 << 30);
  };
  const auto llama = *known_model("meta-llama/Llama-3.1-8B");
  EstimateRequest request{.mode = "lora",
                          .lora_rank = 8,
                          .batch_rows = 2,
                          .recompute = architecture::Recompute::Blocks};
  EXPECT_NEAR(gib(llama, request), 16.2, 1.0);
  request.mode = "qlora";
  request.double_quant = true;
  EXPECT_NEAR(gib(llama, request), 7.4, 1.0);
  const auto qwen = *known_model("Qwen/Qwen2.5-7B");
  request.batch_rows = 1;
  EXPECT_NEAR(gib(qwen, request), 6, 1.5) << "its embedding and head stay in bf16";
  request.mode = "lora";
  EXPECT_NEAR(gib(qwen, request), 16, 2);
  request = {.mode = "full", .dtype = "fp32", .recompute = architecture::Recompute::Blocks};
  EXPECT_NEAR(gib(qwen, request), 120, 12);
}

// The training of presets/h100.yaml and presets/rtx5090.yaml, without their machines.
settings::TrainSettings learning_from_rewards(const char* mode) {
  settings::TrainSettings settings;
  settings.task = "grpo";
  settings.model.max_seq_len = 1024;
  settings.tuning.mode = mode;
  settings.tuning.lora.r = 16;
  settings.rollout.samples = 8;
  settings.rollout.max_new_tokens = 512;
  settings.train.batch_size.value = 1;
  settings.train.grad_accum.value = 8;
  settings.train.gradient_checkpointing = "auto";
  return settings;
}

MemoryPlan plan_on(const Machine& machine, const settings::TrainSettings& settings) {
  const auto model = *known_model("Qwen/Qwen3-32B");
  EstimateRequest request = request_in(settings, machine, "bf16");
  settle_recompute(model, settings, machine.device_bytes, request);
  return estimate_memory(model, request);
}

TEST(LearningFromRewards, OfA32BModelFitsOneCardInBothHalvesOfAStep) {
  const int64_t parameters = count_parameters(*known_model("Qwen/Qwen3-32B"));
  // r times inputs and outputs of the seven maps of 64 blocks.
  const int64_t adapter = 64 * 16 * (2 * (5120 + 8192) + 2 * (5120 + 1024) + 3 * (5120 + 25600));
  const Machine& h100 = *known_machine("h100");
  const MemoryPlan lora = plan_on(h100, learning_from_rewards("lora"));
  EXPECT_EQ(lora.weight_bytes, 2 * parameters + 4 * adapter);
  EXPECT_EQ(lora.optimizer_bytes, 8 * adapter);
  EXPECT_EQ(lora.gradient_bytes, 4 * adapter) << "micro-batches are summed";
  // 64 texts of 1,024 tokens, 64 layers with 8 heads of 128 for keys and for values, in bf16.
  const int64_t wanted = int64_t{64} * 1024 * 64 * 2 * 8 * 128 * 2;
  const int64_t state = lora.drawing_total_bytes() - lora.drawing_bytes;
  EXPECT_EQ(lora.drawing_bytes, std::min(wanted, (h100.device_bytes - state) / 2));
  EXPECT_LT(lora.drawing_bytes, wanted) << "the engine draws fewer texts together";
  EXPECT_LE(lora.drawing_total_bytes(), h100.device_bytes);
  EXPECT_LE(lora.learning_total_bytes(), h100.device_bytes);
  const Machine& rtx5090 = *known_machine("rtx5090");
  const MemoryPlan qlora = plan_on(rtx5090, learning_from_rewards("qlora"));
  EXPECT_LE(qlora.drawing_total_bytes(), rtx5090.device_bytes);
  EXPECT_LE(qlora.learning_total_bytes(), rtx5090.device_bytes);
  EXPECT_GT(plan_on(rtx5090, learning_from_rewards("lora")).total_bytes(), rtx5090.device_bytes);
}

TEST(LearningFromRewards, CountsTextsAndTheReference) {
  const auto model = *known_model("Qwen/Qwen2.5-0.5B");
  Machine machine{.devices = 1, .device_bytes = int64_t{1} << 40};
  settings::TrainSettings settings = learning_from_rewards("full");
  EstimateRequest request = request_in(settings, machine, "bf16");
  const MemoryPlan plan = estimate_memory(model, request);
  EXPECT_EQ(plan.reference_bytes, 0);
  EXPECT_EQ(plan.drawing_bytes, int64_t{64} * 1024 * 24 * 2 * 2 * 64 * 2);
  request.batch_rows = 8;
  request.texts_of_row = 0;
  EXPECT_EQ(estimate_memory(model, request).activation_bytes, plan.activation_bytes)
      << "a problem is as many rows as it has texts";
  settings.policy.kl_beta = 0.1;
  const MemoryPlan held = estimate_memory(model, request_in(settings, machine, "bf16"));
  EXPECT_EQ(held.reference_bytes, 2 * count_parameters(model));
  EXPECT_EQ(held.total_bytes(), plan.total_bytes() + held.reference_bytes);
  settings.tuning.mode = "lora";
  EXPECT_EQ(estimate_memory(model, request_in(settings, machine, "bf16")).reference_bytes, 0)
      << "the base is in memory";
  settings.policy.reference = "another/model";
  EXPECT_GT(estimate_memory(model, request_in(settings, machine, "bf16")).reference_bytes, 0);
}

TEST(MemoryEstimate, RefusesWhatItDoesNotKnow) {
  const auto model = *known_model("Qwen/Qwen2.5-7B");
  EXPECT_THROW(estimate_memory(model, {.mode = "prefix"}), ConfigError);
  EXPECT_THROW(estimate_memory(model, {.quantization = "int3"}), ConfigError);
  EXPECT_THROW(estimate_memory(model, {.mode = "full", .quantization = "nf4"}), ConfigError);
}

}  // namespace
}  // namespace convoy::sizing
