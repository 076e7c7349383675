// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/generate/process_rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "convoy/apps/recipes/generate/model_text_engine.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/process/run_files.h"
#include "convoy/farm/process/workers/row_worker_process.h"
#include "convoy/farm/process/workers/rows_in_flight.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"

namespace convoy::recipes {
namespace {

ModelRequest worker_model(const settings::ProcessSettings& settings,
                          const device::RankDevice& rank_device) {
  const settings::ProcessModelSettings& model = settings.model;
  settings::ModelFlags flags;
  flags.model = model.name;
  flags.adapter = model.adapter;
  flags.revision = model.revision;
  flags.dtype = model.dtype;
  flags.held.quantization = model.quantization;
  flags.held.double_quant = model.double_quant;
  if (settings.engine.deterministic && !rank_device.device.is_cpu())
    throw ConfigError("texts are independent of other rows only on the CPU",
                      {.key = "deterministic", .hint = "use --devices cpu, or leave it out"});
  settings::EngineFlags engine;
  engine.deterministic = settings.engine.deterministic;
  engine.weights = settings.engine.weights;
  engine.activations = settings.engine.activations;
  engine.kv_dtype = settings.engine.kv_dtype;
  return model_request(flags, engine, model.template_path, rank_device);
}

TextEngineOptions engine_options(const process::PipelinePlan& plan, const LoadedModel& loaded,
                                 const process::WorkerAssignment& task, int64_t workers_on_host) {
  const settings::ProcessEngineSettings& engine = plan.settings.engine;
  const auto hardware =
      loaded.model->device().is_cpu() ? scheduler::Hardware::Cpu : scheduler::Hardware::Gpu;
  return {.rows = process::texts_together(plan.settings, task.rows_in_flight, hardware),
          .longest_row_tokens = std::min(process::longest_request_tokens(plan.settings),
                                         loaded.model->max_positions()),
          .kv_blocks = engine.kv_blocks.value.value_or(0),
          .workers_on_host = workers_on_host,
          .kv_int8 = engine.kv_dtype == "int8",
          .prefill_chunk = engine.prefill_chunk.value.value_or(0),
          .cuda_graphs = engine.cuda_graphs,
          .template_kwargs = settings::template_kwargs(plan.settings.model.template_kwargs,
                                                       "model.template_kwargs"),
          .schemas = plan.schemas};
}

}  // namespace

void process_rows(const ProcessRowsRequest& request, const Log& log) {
  const process::WorkerAssignment task = process::WorkerAssignment::take_from_environment();
  const at::NoGradGuard no_grad;
  std::optional<LoadedModel> loaded;  // outlives the engine
  process::run_row_worker_process(task, [&]() -> process::WorkerEquipment {
    process::PipelinePlan plan = process::read_pipeline_plan(request.run_folder);
    const device::RankDevice rank_device = device::take_rank_device(request.devices, 0);
    const auto workers = static_cast<int>(request.workers_on_host);
    device::share_cpu_threads(workers);
    std::optional<device::FreeCoreThreads> threads;
    if (rank_device.device.is_cpu()) threads.emplace(workers);
    loaded.emplace(load_model(worker_model(plan.settings, rank_device), log));
    const std::string reduced = threads ? threads->take() : "";
    if (request.tell_busy_cores && !reduced.empty()) process::send_note(reduced);
    process::WorkerEquipment equipment;
    equipment.engine = make_text_engine(
        *loaded, engine_options(plan, *loaded, task, request.workers_on_host), log);
    equipment.program = std::make_unique<process::RowPipeline>(std::move(plan));
    return equipment;
  });
}

}  // namespace convoy::recipes
