// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/low_memory.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/process/workers/rows_in_flight.h"

namespace convoy::process {
namespace {

// DeepSeek-R1-Distill-Qwen-7B.
ModelFacts seven_billion() {
  ModelFacts facts;
  facts.parameters = 7'615'616'512;
  facts.layers = 28;
  facts.kv_values_per_token = 2 * 28 * 4 * 128;
  facts.positions = 131'072;
  return facts;
}

settings::ProcessSettings within(double memory_gib) {
  settings::ProcessSettings settings;
  settings.model.name = "seven";
  settings.model.dtype = "bf16";
  settings.engine.low_memory = true;
  settings.engine.memory_gib = memory_gib;
  return settings;
}

TEST(FitMemory, LeavesEverythingWhereThereIsNoBudget) {
  settings::ProcessSettings settings;
  EXPECT_EQ(fit_memory(settings, seven_billion()), "");
  EXPECT_EQ(settings.model.dtype, "auto");
  EXPECT_TRUE(settings.engine.kv_blocks.is_auto());
}

TEST(FitMemory, AWideBudgetCostsNothing) {
  settings::ProcessSettings settings = within(80);
  EXPECT_NE(fit_memory(settings, seven_billion()), "");
  EXPECT_EQ(settings.engine.weights, "model");
  EXPECT_EQ(settings.engine.kv_dtype, "model");
  EXPECT_EQ(settings.engine.max_requests.value, 16);
  EXPECT_EQ(settings.engine.prefill_chunk.value, 512);
}

// A card's defaults would take more than the budget.
TEST(FitMemory, SettlesAllThatAGpuWouldFill) {
  settings::ProcessSettings settings = within(12);
  fit_memory(settings, seven_billion());
  const int64_t rows = rows_in_flight(settings.workers, scheduler::Hardware::Gpu);
  EXPECT_LE(rows, 16);
  EXPECT_LE(texts_together(settings, rows, scheduler::Hardware::Gpu), 16);
  EXPECT_LE(settings.engine.prefill_chunk.value, 512);
  EXPECT_FALSE(settings.engine.kv_blocks.is_auto());
}

// The low-memory mode of the guide has 12 GiB. In bf16 the weights alone take 14 GiB.
TEST(FitMemory, TwelveGibTakeSmallerWeights) {
  settings::ProcessSettings settings = within(12);
  fit_memory(settings, seven_billion());
  EXPECT_EQ(settings.engine.weights, "int8");
  EXPECT_EQ(settings.engine.kv_dtype, "int8");
  EXPECT_EQ(settings.model.dtype, "bf16");
  EXPECT_FALSE(settings.engine.kv_blocks.is_auto());
}

TEST(FitMemory, WhatTheUserSettledStays) {
  settings::ProcessSettings settings = within(80);
  settings.model.dtype = "fp32";
  settings.workers.batch_size = 1;
  settings.engine.kv_dtype = "int8";
  fit_memory(settings, seven_billion());
  EXPECT_EQ(settings.model.dtype, "fp32");
  EXPECT_EQ(settings.workers.batch_size.value, 1);
  EXPECT_EQ(settings.engine.kv_dtype, "int8");
}

TEST(FitMemory, QuantisedWeightsStayAsTheyAreHeld) {
  ModelFacts facts = seven_billion();
  facts.block_parameters = 6'525'000'000;
  settings::ProcessSettings settings = within(12);
  settings.model.quantization = "nf4";
  settings.model.double_quant = true;
  fit_memory(settings, facts);
  EXPECT_EQ(settings.engine.weights, "model");
  EXPECT_EQ(settings.engine.kv_dtype, "model");  // 5.5 GiB of weights leave room for it
  settings = within(4);
  settings.model.quantization = "nf4";
  EXPECT_THROW(fit_memory(settings, facts), ConfigError);
  EXPECT_LT(facts.memory_needs(2, settings.model).weight_bytes, 7'000'000'000);
  // A folder in codes needs no flag.
  settings.model.quantization = "auto";
  facts.stored_code_bytes = 3'400'000'000;
  facts.whole_parameters = 1'090'616'512;
  EXPECT_EQ(facts.memory_needs(2, settings.model).weight_bytes,
            int64_t{3'400'000'000} + 2 * int64_t{1'090'616'512});
}

TEST(FitMemory, CountsTheStatesOfRows) {
  settings::ProcessSettings settings = within(12);
  ModelFacts facts = seven_billion();
  facts.tail_values_per_row = 100;
  facts.state_values_per_row = 1000;
  EXPECT_EQ(facts.memory_needs(2, settings.model).state_bytes_per_row, 2 * (100 * 2 + 1000 * 4));
}

TEST(FitMemory, SaysWhenNothingFits) {
  for (const auto& [gib, budget] : {std::pair(2.0, "2.00 GiB"), std::pair(0.001, "1 MiB")}) {
    settings::ProcessSettings settings = within(gib);
    try {
      fit_memory(settings, seven_billion());
      ADD_FAILURE() << gib;
    } catch (const ConfigError& error) {
      EXPECT_TRUE(std::string(error.what()).ends_with(std::string("the budget is ") + budget))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace convoy::process
