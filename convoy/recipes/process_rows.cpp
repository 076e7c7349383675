// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/process_rows.h"

#include <memory>
#include <optional>
#include <utility>

#include "convoy/device/placement.h"
#include "convoy/device/threads.h"
#include "convoy/process/row_pipeline.h"
#include "convoy/process/row_worker_process.h"
#include "convoy/process/run_files.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/recipes/model_text_engine.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::recipes {
namespace {

settings::ModelFlags model_flags(const settings::ProcessModelSettings& model) {
  settings::ModelFlags flags;
  flags.model = model.name;
  flags.adapter = model.adapter;
  flags.revision = model.revision;
  flags.dtype = model.dtype;
  return flags;
}

}  // namespace

void process_rows(const ProcessRowsRequest& request, const Log& log) {
  const process::WorkerTask task = process::WorkerTask::take_from_environment();
  const at::NoGradGuard no_grad;
  std::optional<LoadedModel> loaded;  // outlives the engine
  process::run_row_worker_process(task, [&]() -> process::WorkerEquipment {
    process::PipelinePlan plan = process::read_pipeline_plan(request.run_folder);
    const settings::ProcessModelSettings model = plan.settings.model;
    const device::Placement placement = device::place_rank(request.devices, 0);
    device::share_cpu_threads(static_cast<int>(request.workers_on_host));
    loaded.emplace(load_model(
        model_request(model_flags(model), model.template_path, placement), log));
    process::WorkerEquipment equipment;
    equipment.engine = make_text_engine(
        *loaded, {.rows = task.rows_in_flight,
                  .template_kwargs =
                      settings::template_kwargs(model.template_kwargs, "model.template_kwargs")});
    equipment.program = std::make_unique<process::RowPipeline>(std::move(plan));
    return equipment;
  });
}

}  // namespace convoy::recipes
