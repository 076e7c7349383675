// SPDX-License-Identifier: Apache-2.0
//
// Tests how much of a GPU an engine takes without settings of the user, and two engines on one GPU.
#include <gtest/gtest.h>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/generate/model_text_engine.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/device/memory.h"
#include "files/temporary_folder.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

constexpr size_t kCardBytes = size_t{48} << 30;

class EngineOnACard : public ::testing::Test {
 protected:
  EngineOnACard() {
    simulated::install(2);
    simulated::set_capacity(1, kCardBytes);
    testing::make_model(folder_ / "model");
  }
  ~EngineOnACard() override { simulated::set_capacity(1, 0); }

  recipes::LoadedModel loaded(at::Device device) const {
    return recipes::load_model({.name = (folder_ / "model").string(), .device = device}, quiet_);
  }
  generate::EngineConfig config(const recipes::LoadedModel& model,
                                const settings::EngineFlags& flags = {},
                                const recipes::EngineSurroundings& surroundings = {}) const {
    return recipes::engine_config(flags, model, surroundings, quiet_);
  }

  const Log quiet_{LogLevel::Quiet};
  convoy::testing::TemporaryFolder folder_;
};

TEST_F(EngineOnACard, FillsItAfterTheWeights) {
  const recipes::LoadedModel model = loaded(simulated::device(1));
  const generate::EngineConfig card = config(model);
  EXPECT_EQ(card.max_rows, 256);
  EXPECT_EQ(card.prefill_chunk, 4096);
  const auto free = static_cast<double>(kCardBytes - simulated::memory(1).live_bytes);
  EXPECT_EQ(card.kv_memory_bytes, static_cast<int64_t>(0.9 * free));
  EXPECT_EQ(card.kv_blocks, 0) << "at most what the rows need";
  const generate::EngineConfig cpu = config(loaded(at::kCPU));
  EXPECT_EQ(cpu.max_rows, 16);
  EXPECT_EQ(cpu.prefill_chunk, 512);
}

TEST_F(EngineOnACard, KeepsWhatTheUserSettled) {
  const recipes::LoadedModel model = loaded(simulated::device(1));
  settings::EngineFlags flags;
  flags.batch_size = 3;
  flags.prefill_chunk = 77;
  flags.kv_blocks = 9;
  const generate::EngineConfig card = config(model, flags);
  EXPECT_EQ(card.max_rows, 3);
  EXPECT_EQ(card.prefill_chunk, 77);
  EXPECT_EQ(card.kv_blocks, 9);
}

TEST_F(EngineOnACard, LeavesHalfToATraining) {
  const recipes::LoadedModel model = loaded(simulated::device(1));
  const recipes::EngineSurroundings training{.is_beside_training = true};
  const generate::EngineConfig beside = config(model, {}, training);
  EXPECT_EQ(beside.max_rows, 16);
  EXPECT_EQ(beside.prefill_chunk, 512);
  EXPECT_EQ(beside.kv_memory_bytes, device::usable_rank_memory_bytes(simulated::device(1), 1) / 2);
  EXPECT_EQ(beside.claim, nullptr);
}

// Other processes start and end during a run, and a deterministic run must still plan the same
// steps.
TEST_F(EngineOnACard, DeterministicRunsTakeNoNoticeOfOthers) {
  const recipes::LoadedModel model = loaded(simulated::device(1));
  settings::EngineFlags flags;
  flags.deterministic = true;
  const int64_t alone = config(model, flags).kv_memory_bytes;
  EXPECT_EQ(alone, config(model).kv_memory_bytes);
  // The plan counts the card's own memory, and the part of it that this process holds.
  simulated::set_capacity(1, kCardBytes / 2);
  EXPECT_LT(config(model, flags).kv_memory_bytes, alone);
}

TEST_F(EngineOnACard, TwoNeverShareItByAccident) {
  const recipes::LoadedModel model = loaded(simulated::device(1));
  auto first = recipes::make_text_engine(model, {.rows = 2, .longest_row_tokens = 64});
  try {
    config(model);
    ADD_FAILURE() << "both would fill it";
  } catch (const ConfigError& error) {
    const std::string sentence = error.sentence();
    for (const char* const words :
         {"sim:1 has the engine of process ", "CUDA_VISIBLE_DEVICES", "give each its --kv-blocks"})
      EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
  }
  // The other device is free. An engine with --kv-blocks may share a device.
  EXPECT_NO_THROW(config(loaded(simulated::device(0))));
  settings::EngineFlags flags;
  flags.kv_blocks = 9;
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(recipes::engine_config(flags, model, {}, quiet_));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("they share its speed"),
            std::string::npos);
  first.reset();
  EXPECT_NO_THROW(config(model));
}

}  // namespace
}  // namespace convoy
