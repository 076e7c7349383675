// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/compute_dtype.h"

#include <gtest/gtest.h>

#include "convoy/core/base/cpu_level_limit.h"

namespace convoy::sizing {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Machine cpu(const std::string& level, int64_t bytes = 64 * kGiB) {
  return {.hardware = Hardware::Cpu, .device_bytes = bytes, .cpu_level = level};
}

TEST(ComputeDtype, IsBf16OnEveryCpuFromAvx2On) {
  for (const std::string_view level : kCpuLevels) {
    const DtypeChoice choice = choose_dtype(dtype_question(cpu(std::string(level))));
    EXPECT_EQ(choice.dtype, level == "baseline" ? "fp32" : "bf16") << level;
    EXPECT_NE(choice.reason.find(level), std::string::npos) << choice.reason;
  }
  EXPECT_EQ(choose_dtype(dtype_question(cpu(""))).dtype, "bf16");  // the facts of a foreign CPU
}

TEST(ComputeDtype, FollowsWhatAGpuMultiplies) {
  EXPECT_EQ(choose_dtype({.hardware = Hardware::Gpu}).dtype, "bf16");
  EXPECT_EQ(choose_dtype({.hardware = Hardware::Gpu, .gpu_has_bf16 = false}).dtype, "fp32");
}

TEST(ComputeDtype, TakesBf16WhereFp32DoesNotFit) {
  DtypeQuestion question = dtype_question(cpu("baseline", 4 * kGiB));
  EXPECT_EQ(choose_dtype(question).dtype, "fp32");
  question.fp32_bytes = 5 * kGiB;
  EXPECT_EQ(choose_dtype(question).text("--dtype "),
            "bf16: fp32 needs 5.00 GiB, and there are 4.00 GiB; --dtype fp32 for more exact "
            "numbers");
  question = dtype_question(cpu("baseline"));
  question.saves_memory = true;
  EXPECT_EQ(choose_dtype(question).dtype, "bf16");
}

TEST(ComputeDtype, OfATrainingIsWhatItsSettingsName) {
  settings::TrainSettings settings;
  EXPECT_EQ(choose_training_dtype(settings, cpu("avx2"), {}).dtype, "bf16");
  EXPECT_EQ(choose_training_dtype(settings, cpu("baseline"), {}).dtype, "fp32");
  settings.train.bf16 = true;
  EXPECT_EQ(choose_training_dtype(settings, cpu("baseline"), {}), (DtypeChoice{"bf16", ""}));
  settings.train.bf16 = false;
  EXPECT_EQ(choose_training_dtype(settings, cpu("amx"), {}), (DtypeChoice{"fp32", ""}));
  settings.train.fp16 = true;
  EXPECT_EQ(choose_training_dtype(settings, cpu("baseline"), {}).dtype, "bf16");
  settings.model.dtype = "fp32";
  EXPECT_EQ(choose_training_dtype(settings, cpu("amx"), {}).dtype, "fp32");
}

TEST(ComputeDtype, OfATrainingKnowsItsMemory) {
  settings::TrainSettings settings;
  const auto model = known_model("qwen/qwen2.5-7b-instruct");
  ASSERT_TRUE(model);
  EXPECT_EQ(choose_training_dtype(settings, cpu("baseline", 64 * kGiB), model).dtype, "fp32");
  EXPECT_EQ(choose_training_dtype(settings, cpu("baseline", 24 * kGiB), model).dtype, "bf16");
}

}  // namespace
}  // namespace convoy::sizing
