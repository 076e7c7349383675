// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_memory.h"

#include <fmt/format.h>

#include "convoy/core/base/bytes_text.h"
#include "convoy/core/base/usable_memory.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/workers/rows_in_flight.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/sizing/generation_memory.h"

namespace convoy::apps {
namespace {

// LibTorch and the tokenizer in a worker, measured with SmolLM2-135M.
constexpr int64_t kWorkerProgramBytes = int64_t{150} << 20;

}  // namespace

std::string worker_memory(const settings::ProcessSettings& settings,
                          const process::ModelFacts& model, const ProcessWorkers& workers) {
  const scheduler::Hardware hardware = workers.hardware();
  const bool on_cpu = hardware == scheduler::Hardware::Cpu;
  const settings::ProcessEngineSettings& engine = settings.engine;
  const int64_t rows_in_flight = process::rows_in_flight(settings.workers, hardware);
  const sizing::GenerationRequest request{
      .dtype = settings.model.dtype,
      .weights = engine.weights,
      .quantization = settings.model.encodes() ? settings.model.quantization : "none",
      .double_quant = settings.model.double_quant,
      .rows = {.rows = process::texts_together(settings, rows_in_flight, hardware),
               .row_tokens = process::longest_request_tokens(settings),
               .step_tokens = engine.prefill_chunk.value.value_or(
                   scheduler::engine_defaults(hardware).step_tokens),
               .kv_blocks = engine.kv_blocks.value.value_or(0),
               .int8_kv = engine.kv_dtype == "int8"},
      .hardware = on_cpu ? sizing::Hardware::Cpu : sizing::Hardware::Gpu,
      .program_bytes = on_cpu ? kWorkerProgramBytes : 0};
  const architecture::DecoderSpec spec = families::read_decoder_spec(
      io::ModelFolder::open(settings.model.name, settings.model.revision));
  sizing::GenerationMemory memory = sizing::plan_generation(spec, request);
  if (model.stored_code_bytes > 0) {
    memory.weight_bytes =
        model.memory_needs(request.dtype == "bf16" ? 2 : 4, settings.model).weight_bytes;
    memory.packed_bytes = 0;
  }
  const int64_t share_bytes = on_cpu ? total_memory_bytes() / workers.count : 0;
  if (share_bytes > 0 && engine.kv_blocks.is_auto()) memory.bound_kv(share_bytes);
  std::string text = fmt::format("{} a worker", memory.text());
  if (share_bytes > 0 && memory.total_bytes() > share_bytes)
    text += fmt::format(
        ", which does not fit: each has {}; --low-memory with --memory-gib takes "
        "less",
        bytes_text(share_bytes));
  return text;
}

}  // namespace convoy::apps
