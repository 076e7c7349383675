// SPDX-License-Identifier: Apache-2.0
//
// `convoy process-worker`: one worker of `convoy process --engine`, which has its texts from
// servers and so needs no LibTorch. A run starts it, with the task in its environment. The list of
// commands does not name it.
#include <sys/resource.h>

#include <memory>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/process/run_files.h"
#include "convoy/farm/process/workers/row_worker_process.h"
#include "convoy/farm/process/workers/rows_in_flight.h"
#include "convoy/farm/remote/http_text_engine.h"

namespace convoy::apps {
namespace {

struct ProcessWorkerFlags {
  std::string run_folder;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("run_folder", run_folder, "run folder");
  }
};

// Raises the limit on descriptors: each request has its own connection.
void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run_process_worker(Context& context, const std::vector<std::string>& arguments) {
  ProcessWorkerFlags flags;
  context.parse(flags, arguments);
  const auto task = process::WorkerAssignment::take_from_environment();
  allow_many_connections();
  const http::CurlLibrary curl;
  process::run_row_worker_process(task, [&]() -> process::WorkerEquipment {
    process::PipelinePlan plan = process::read_pipeline_plan(flags.run_folder);
    const settings::ProcessSettings& settings = plan.settings;
    remote::HttpEngineOptions options{
        .requests =
            process::texts_together(settings, task.rows_in_flight, scheduler::Hardware::Cpu),
        .template_kwargs =
            settings::template_kwargs(settings.model.template_kwargs, "model.template_kwargs"),
        .warn = process::send_note,
        .was_answered = [&task] {
          const auto store = jobs::open_store(task.store, {.access = jobs::Access::ReadOnly});
          return process::has_answered_rows(*store, task.run);
        }};
    // Finished texts are saved at once: texts of a server may cost money, and saving does not stop
    // the requests.
    process::WorkerEquipment equipment{.keep_within = std::chrono::milliseconds(0)};
    equipment.engine = remote::make_http_text_engine(
        curl, remote::read_servers(settings.remote, settings.model.name), std::move(options),
        context.log());
    equipment.program = std::make_unique<process::RowPipeline>(std::move(plan));
    return equipment;
  });
  return 0;
}

}  // namespace

Command process_worker_command() {
  return {.name = "process-worker",
          .summary = "Run one worker that asks servers, for `convoy process`",
          .usage = "CONVOY_PROCESS_TASK=T convoy process-worker --run-folder D",
          .examples = "",
          .flags = {flags_of<ProcessWorkerFlags>()},
          .run = run_process_worker,
          .hidden = true};
}

}  // namespace convoy::apps
