// SPDX-License-Identifier: Apache-2.0
//
// Compares the plan with the values of its formulas for a model that is written in this file;
// tests/sharing compares it with measured runs.
#include "convoy/apps/recipes/memory/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

namespace convoy::recipes {
namespace {

std::unique_ptr<nn::CausalLm> tiny(const std::string& dtype, nn::DeferredValues& values) {
  settings::BenchFlags flags;
  flags.geometry = "tiny";
  flags.dtype = dtype;
  return bench_model(flags, at::kCPU, &values);
}

int64_t elements(nn::CausalLm& model) {
  int64_t sum = 0;
  for (const nn::NamedTensor& parameter : model.parameters()) sum += parameter.value.numel();
  return sum;
}

sizing::StateSharing sharing(const std::string& strategy) {
  return sizing::sharing_of(settings::strategy_named(strategy));
}

std::vector<sizing::StateSharing> candidates() {
  std::vector<sizing::StateSharing> list;
  for (const settings::StrategyFacts& strategy : settings::strategies_of_processes())
    list.push_back(sizing::sharing_of(strategy));
  return list;
}

// Compares byte counts with a tolerance, because pieces are rounded up.
void expect_about(int64_t found, int64_t wanted) {
  EXPECT_LE(std::abs(found - wanted), 100) << found << " instead of " << wanted;
}

TEST(MemoryPlan, StatesAreCutByTheirStrategy) {
  nn::DeferredValues values;
  const auto model = tiny("bf16", values);
  model->set_requires_grad(true);
  const sizing::MemoryQuestion question{
      .shape = training_shape(*model), .ranks = 4, .accumulates = true, .micro_batch_tokens = 100};
  const int64_t count = elements(*model);
  const sizing::MemoryPlan ddp = sizing::plan_memory(question, sharing("ddp"));
  EXPECT_EQ(ddp.weight_bytes, 2 * count);
  EXPECT_EQ(ddp.gradient_bytes, 4 * count);
  EXPECT_EQ(ddp.optimizer_bytes, 12 * count) << "two moments and a master";
  EXPECT_EQ(ddp.packed_bytes, 0) << "what trains is not packed";
  const sizing::MemoryPlan zero1 = sizing::plan_memory(question, sharing("zero1"));
  EXPECT_EQ(zero1.weight_bytes, ddp.weight_bytes);
  expect_about(zero1.optimizer_bytes, ddp.optimizer_bytes / 4);
  expect_about(zero1.gradient_bytes, 5 * count);
  const sizing::MemoryPlan zero2 = sizing::plan_memory(question, sharing("zero2"));
  expect_about(zero2.gradient_bytes, count);
  EXPECT_EQ(zero2.weight_bytes, ddp.weight_bytes);
  const sizing::MemoryPlan zero3 = sizing::plan_memory(question, sharing("zero3"));
  expect_about(zero3.weight_bytes, ddp.weight_bytes / 4);
  for (const sizing::MemoryPlan& plan : {ddp, zero1, zero2, zero3})
    EXPECT_EQ(plan.activation_bytes, ddp.activation_bytes) << "rows are cut by ranks, not these";
}

TEST(MemoryPlan, CountsMomentsInTheFormTheyHave) {
  nn::DeferredValues values;
  const auto model = tiny("bf16", values);
  model->set_requires_grad(true);
  const int64_t count = elements(*model);
  sizing::MemoryQuestion question{
      .shape = training_shape(*model), .micro_batch_tokens = 100, .moment_bytes_of_256 = 520};
  expect_about(plan_memory(question, sharing("none")).optimizer_bytes,
               count * 520 / 256 + 4 * count);
  question.has_masters = false;
  expect_about(plan_memory(question, sharing("none")).optimizer_bytes, count * 520 / 256);
  question.pages_moments = true;
  expect_about(plan_memory(question, sharing("none")).optimizer_bytes, count * 520 / 256);
}

TEST(MemoryPlan, WeightsInCodesCountTheirBytes) {
  settings::BenchFlags flags;
  flags.geometry = "tiny";
  const auto model = bench_model(flags, at::kCPU);
  const int64_t before = elements(*model);
  int64_t coded = 0;
  for (nn::Linear* linear : model->block_linears()) {
    coded += linear->weight().numel();
    linear->set_bitsandbytes(
        kernels::encode_weight(linear->weight(), {kernels::CodeType::Nf4, 64, true}));
  }
  EXPECT_EQ(nn::count_parameters(*model), before);
  const adapters::LoraModel lora = adapters::LoraModel::create(*model, {}, 0);
  int64_t trained = 0;
  for (const nn::NamedTensor& leaf : lora.parameters()) trained += leaf.value.numel();
  const sizing::MemoryPlan plan =
      sizing::plan_memory({.shape = training_shape(*model), .micro_batch_tokens = 64}, {});
  // A weight takes half a byte for its code and 1/64 byte for its block's absmax. There are also
  // two fp32 numbers, one for each 16,384 weights and one for each tensor.
  const auto bytes = static_cast<double>(plan.weight_bytes - 2 * (before - coded) - 4 * trained);
  EXPECT_NEAR(bytes / static_cast<double>(coded), 0.5 + 1.0 / 64, 0.002);
  EXPECT_EQ(plan.packed_bytes, 0);
}

TEST(MemoryPlan, AnAdapterLeavesOnlyTheWeightsToCut) {
  nn::DeferredValues values;
  const auto model = tiny("fp32", values);
  adapters::LoraConfig config;
  config.r = 4;
  const adapters::LoraModel lora = adapters::LoraModel::create(*model, config, 0);
  int64_t trained = 0;
  for (const nn::NamedTensor& leaf : lora.parameters()) trained += leaf.value.numel();
  const sizing::MemoryQuestion question{
      .shape = training_shape(*model), .ranks = 2, .micro_batch_tokens = 64};
  const int64_t count = elements(*model);
  const sizing::MemoryPlan ddp = sizing::plan_memory(question, sharing("ddp"));
  EXPECT_EQ(ddp.weight_bytes, 4 * (count + trained));
  EXPECT_EQ(ddp.optimizer_bytes, 8 * trained);
  EXPECT_GT(ddp.packed_bytes, 0);
  const sizing::MemoryPlan zero3 = sizing::plan_memory(question, sharing("zero3"));
  expect_about(zero3.weight_bytes, 2 * count + 4 * trained);
  EXPECT_EQ(zero3.packed_bytes, ddp.packed_bytes / model->num_layers()) << "of one block at a time";
}

TEST(MemoryPlan, DoraKeepsBothTermsOfItsMagnitude) {
  settings::BenchFlags flags;
  flags.geometry = "tiny";
  flags.dtype = "fp32";
  const auto model = bench_model(flags, at::kCPU);
  int64_t widths = 0;
  int64_t widest = 0;
  for (const nn::Linear* linear : model->block_linears()) {
    widths += linear->out_features();
    widest = std::max(widest, linear->out_features());
  }
  adapters::LoraConfig config;
  config.r = 4;
  const auto plan_of = [&](bool dora) {
    config.use_dora = dora;
    const adapters::LoraModel lora = adapters::LoraModel::create(*model, config, 0);
    return sizing::plan_memory({.shape = training_shape(*model), .micro_batch_tokens = 512}, {});
  };
  const int64_t plain = plan_of(false).activation_bytes;
  EXPECT_EQ(plan_of(true).activation_bytes, plain + 512 * 4 * (2 * widths + 4 * widest));
}

TEST(MemoryPlan, ActivationsGrowWithTokensAndShrinkByRecomputation) {
  nn::DeferredValues values;
  const auto model = tiny("fp32", values);
  model->set_requires_grad(true);
  sizing::MemoryQuestion question{
      .shape = training_shape(*model), .ranks = 1, .micro_batch_tokens = 512};
  const int64_t few = sizing::plan_memory(question, sharing("none")).activation_bytes;
  question.micro_batch_tokens = 1024;
  EXPECT_EQ(sizing::plan_memory(question, sharing("none")).activation_bytes, 2 * few);
  question.recompute = architecture::Recompute::Blocks;
  EXPECT_LT(sizing::plan_memory(question, sharing("none")).activation_bytes, 2 * few);
}

TEST(ChooseStrategy, TakesTheFirstThatFits) {
  nn::DeferredValues values;
  const auto model = tiny("fp32", values);
  model->set_requires_grad(true);
  const sizing::MemoryQuestion question{
      .shape = training_shape(*model), .ranks = 4, .accumulates = true, .micro_batch_tokens = 64};
  EXPECT_EQ(sizing::choose_strategy(question, candidates(), 0).strategy, "ddp")
      << "the limit is unknown";
  const auto just_enough = [&](const char* strategy) {
    return sizing::plan_memory(question, sharing(strategy)).total_bytes() * 100 / 89;
  };
  for (const char* strategy : {"ddp", "zero2", "zero3"}) {
    const sizing::StrategyChoice choice =
        sizing::choose_strategy(question, candidates(), just_enough(strategy));
    EXPECT_EQ(choice.strategy, strategy) << choice.reason;
    EXPECT_TRUE(choice.fits);
  }
  const sizing::StrategyChoice none = sizing::choose_strategy(question, candidates(), 1 << 20);
  EXPECT_EQ(none.strategy, "zero3");
  EXPECT_FALSE(none.fits);
  EXPECT_NE(none.reason.find("ddp needs"), std::string::npos) << none.reason;
}

}  // namespace
}  // namespace convoy::recipes
