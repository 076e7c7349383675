// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/low_memory.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/generate/scheduler/engine_defaults.h"

namespace convoy::process {
namespace {

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace

std::string fit_memory(settings::ProcessSettings& settings, const ModelFacts& model) {
  settings::ProcessEngineSettings& engine = settings.engine;
  if (!engine.low_memory) return {};
  const int64_t samples = settings.generate.n;
  const int64_t longest = longest_request_tokens(settings);
  const auto budget_bytes = static_cast<int64_t>(engine.memory_gib * kBytesPerGib);
  // --quantization decides the type of the weights, so the memory ladder does not change it.
  const bool held = settings.model.encodes();
  scheduler::MemoryNeeds needs =
      model.memory_needs(settings.model.dtype == "bf16" ? 2 : 4, settings.model);
  if (held) needs.int8_weight_bytes = needs.weight_bytes;
  // Uses a CPU's defaults on a GPU too: a GPU's defaults would fill its memory, but here a budget
  // limits the memory.
  const scheduler::EngineDefaults usual = scheduler::engine_defaults(scheduler::Hardware::Cpu);
  const scheduler::MemoryRequest request{
      .budget_bytes = budget_bytes,
      .rows = engine.max_requests.value.value_or(
          samples * settings.workers.batch_size.value.value_or(usual.max_rows)),
      .row_tokens = model.positions > 0 ? std::min(longest, model.positions) : longest,
      .step_tokens = engine.prefill_chunk.value.value_or(usual.step_tokens),
      .int8_kv = engine.kv_dtype == "int8",
      .int8_weights = engine.weights == "int8" || held,
      .int4_weights = engine.weights == "int4"};
  const scheduler::MemoryLadderPlan plan = scheduler::climb_down(needs, request);
  if (plan.rung == scheduler::Rung::None)
    throw ConfigError(
        fmt::format("{} does not fit: {}", settings.model.name, plan.text(budget_bytes)),
        {.key = "engine.memory_gib",
         .hint = "raise --memory-gib, lower --max-tokens, or take a smaller model"});
  if (plan.int8_kv) engine.kv_dtype = "int8";
  if (held)
    engine.weights = "model";
  else if (plan.int4_weights)
    engine.weights = "int4";
  else if (plan.int8_weights)
    engine.weights = "int8";
  engine.max_requests = plan.rows;
  engine.prefill_chunk = plan.step_tokens;
  if (engine.kv_blocks.is_auto()) engine.kv_blocks = plan.kv_blocks;
  if (settings.workers.batch_size.is_auto())
    settings.workers.batch_size = std::max<int64_t>(1, plan.rows / samples);
  return plan.text(budget_bytes);
}

}  // namespace convoy::process
