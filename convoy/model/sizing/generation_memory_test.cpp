// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/generation_memory.h"

#include <gtest/gtest.h>

#include "convoy/model/sizing/known_models.h"

namespace convoy::sizing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// The peaks of `convoy bench generate --geometry smollm2-135m --prompt-tokens 32 --new-tokens 16`
// with 1 to 32 rows. The program took 150 MiB of them before the model was loaded.
TEST(GenerationMemory, IsWithinATenthOfMeasuredPeaks) {
  const auto model = known_model("HuggingFaceTB/SmolLM2-135M-Instruct");
  ASSERT_TRUE(model);
  for (const auto& [dtype, peak_mib] : {std::pair("fp32", 1340), std::pair("bf16", 747)}) {
    const GenerationMemory memory = plan_generation(
        *model,
        {.dtype = dtype, .rows = {.rows = 32, .row_tokens = 48}, .program_bytes = 150 * kMiB});
    EXPECT_NEAR(static_cast<double>(memory.total_bytes()) / static_cast<double>(peak_mib * kMiB),
                1.0, 0.1)
        << dtype << ": " << memory.text();
  }
}

// 15 of the 35 layers store keys and values: 12 with a window, and 3 with heads of twice the size.
TEST(GenerationMemory, LayersThatReadOthersKeysStoreNone) {
  const auto model = known_model("google/gemma-4-E2B-it");
  ASSERT_TRUE(model);
  const GenerationMemory memory = plan_generation(*model, {.rows = {.rows = 1, .row_tokens = 320}});
  EXPECT_EQ(memory.kv_bytes, 320 * 2 * 2 * (12 * 256 + 3 * 512));
}

// Every sixth of 12B's 48 layers sees all keys, with one head that is as wide as two.
TEST(GenerationMemory, LayersOfTwoKindsStoreTheirOwnHeads) {
  const auto model = known_model("google/gemma-4-12B-it");
  ASSERT_TRUE(model);
  const GenerationMemory memory = plan_generation(*model, {.rows = {.rows = 1, .row_tokens = 320}});
  EXPECT_EQ(memory.kv_bytes, 320 * 2 * 2 * (40 * 8 * 256 + 8 * 512));
}

TEST(GenerationMemory, CountsWhatAnEngineHolds) {
  const auto model = known_model("qwen/qwen2.5-7b-instruct");
  ASSERT_TRUE(model);
  const int64_t weights = 2 * count_parameters(*model);
  GenerationRequest request{.rows = {.rows = 2, .row_tokens = 100}, .hardware = Hardware::Gpu};
  GenerationMemory memory = plan_generation(*model, request);
  EXPECT_EQ(memory.weight_bytes, weights);
  EXPECT_EQ(memory.packed_bytes, 0);
  EXPECT_EQ(memory.kv_bytes, 2 * 128 * 28 * 2 * 4 * 128 * 2);  // blocks of 32 tokens
  request.rows.int8_kv = true;
  // A head of 128 values takes a byte for each value and 4 bytes for the scale.
  EXPECT_EQ(plan_generation(*model, request).kv_bytes, 2 * 128 * 28 * 2 * 4 * (128 + 4));
  request.rows.kv_bytes = 1000;
  EXPECT_EQ(plan_generation(*model, request).kv_bytes, 1000);
  request.hardware = Hardware::Cpu;
  EXPECT_GT(plan_generation(*model, request).packed_bytes, weights * 8 / 10);
  request.quantization = "nf4";
  EXPECT_LT(plan_generation(*model, request).weight_bytes, weights * 45 / 100);
  request.quantization = "none";
  request.weights = "int4";
  memory = plan_generation(*model, request);
  EXPECT_LT(memory.weight_bytes, weights / 2);
  request.weights = "int8";
  const int64_t of_int8 = plan_generation(*model, request).weight_bytes;
  // The numbers of outputs of the maps query, key, value, output, gate, up and down, and of the
  // head.
  const int64_t rows = 28 * (3584 + 512 + 512 + 3584 + 18944 + 18944 + 3584) + 152064;
  const int64_t codes = int64_t{28} * 3584 * (3584 + 512 + 512 + 3584 + 3 * 18944) + 152064 * 3584;
  const int64_t others = count_parameters(*model) - codes;
  EXPECT_EQ(of_int8, codes + 4 * rows + 2 * others);
  request.weights = "int4";
  // All whole weights are in memory before they are encoded.
  EXPECT_EQ(memory.total_bytes(), weights);
  EXPECT_NE(memory.text().find("whole weights while they are read"), std::string::npos);
}

// On a GPU the pass holds the scores of 512 queries of one row twice, and the row's keys and
// values.
TEST(GenerationMemory, CountsTheScoresOfAttentionUnderASoftCap) {
  auto model = *known_model("google/gemma-2-2b");
  GenerationRequest request{.rows = {.rows = 2, .row_tokens = 1000}, .hardware = Hardware::Gpu};
  const int64_t capped = plan_generation(model, request).step_bytes;
  model.score_cap = 0;
  EXPECT_EQ(capped - plan_generation(model, request).step_bytes,
            1000 * (2 * 8 * 512 * 4 + 2 * 4 * 256 * (2 + 4)));
  request.hardware = Hardware::Cpu;
  const int64_t on_cpu = plan_generation(model, request).step_bytes;
  model.score_cap = 50;
  EXPECT_EQ(plan_generation(model, request).step_bytes, on_cpu);
}

TEST(GenerationMemory, CountsStatesInPlaceOfKeys) {
  auto model = known_model("qwen/qwen2.5-7b-instruct");
  ASSERT_TRUE(model);
  const GenerationRequest request{.rows = {.rows = 3, .row_tokens = 100},
                                  .hardware = Hardware::Gpu};
  const GenerationMemory before = plan_generation(*model, request);
  EXPECT_EQ(before.state_bytes, 0);
  for (size_t layer = 0; layer < 21; ++layer)
    model->layers[layer].mixer = architecture::TokenMixer::GatedDeltaNet;
  model->delta_net = {.num_key_heads = 2,
                      .num_value_heads = 4,
                      .key_head_dim = 8,
                      .value_head_dim = 16,
                      .conv_width = 4};
  const GenerationMemory after = plan_generation(*model, request);
  EXPECT_EQ(after.kv_bytes, before.kv_bytes / 4);  // 7 of 28 layers keep keys
  // Each row and layer has three inputs of 96 channels in bf16 and 4 states of 8 x 16 in fp32. As
  // many states are kept at the ends of prefixes.
  EXPECT_EQ(after.state_bytes, 2 * 3 * 21 * (3 * 96 * 2 + 4 * 8 * 16 * 4));
  EXPECT_NE(after.text().find("states of rows"), std::string::npos);
}

}  // namespace
}  // namespace convoy::sizing
