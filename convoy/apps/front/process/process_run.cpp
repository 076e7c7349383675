// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "convoy/apps/front/process/process_ledger.h"
#include "convoy/apps/front/process/process_prepare.h"
#include "convoy/apps/front/process/process_preview.h"
#include "convoy/apps/front/process/process_report.h"
#include "convoy/apps/front/process/process_rows_check.h"
#include "convoy/apps/front/process/process_rows_source.h"
#include "convoy/apps/front/process/process_work.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/farm/process/results/publish_rows.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

fs::path wanted_folder(const ProcessConfig& config) {
  const std::string& resume = config.flags.resume;
  if (resume == "last") return telemetry::resolve_run("last", "runs");
  if (resume != "auto" && resume != "never") {
    if (!fs::is_directory(resume))
      throw ConfigError(fmt::format("--resume: there is no run folder {}", resume),
                        {.key = "--resume", .hint = "auto, never, last, or a run folder"});
    return resume;
  }
  if (!config.settings.run_dir.empty()) return config.settings.run_dir;
  if (resume == "never") return {};  // the run folder then gets a new name from the time
  return fs::path("runs") / process_run_name(config.settings);
}

telemetry::RunFolder open_process_folder(const ProcessStart& start) {
  const ProcessConfig& config = start.config;
  const fs::path folder = wanted_folder(config);
  const std::string name = process_run_name(config.settings);
  if (config.flags.resume == "never" && !folder.empty() && fs::exists(folder / "config.yaml"))
    throw ConfigError(fmt::format("--resume never, but {} holds a run", folder.string()),
                      {.key = "--run-dir", .hint = "name another folder"});
  if (config.settings.workers.node_rank > 0) return telemetry::RunFolder::take_part(folder, name);
  return telemetry::RunFolder::create(folder, name);
}

int preview_process(const ProcessStart& start) {
  const PreparedProcess& prepared = start.prepared;
  const data::Dataset& dataset = *prepared.dataset;
  ProcessPreview preview{.dataset = dataset_text(dataset),
                         .workers = prepared.workers.text(),
                         .memory = prepared.memory,
                         .first_prompt = check_rows(dataset, prepared.plan(), prepared.facts)};
  look_at_servers(start);
  preview.rows = count_rows(selected_rows(dataset, start.settings().data));
  preview.estimate = estimate_run(prepared.plan(), preview.rows);
  if (start.context.common.json)
    fmt::print("{}\n", preview_json(prepared.plan(), preview).dump(2));
  else
    fmt::print("{}", preview_text(prepared.plan(), preview));
  // Messages of what follows, another phase of task rejection, must not overtake it in a pipe.
  std::fflush(stdout);
  return 0;
}

// Checks rows and outputs before anything is written. Returns the first prompt on the node that
// reads the data set.
std::optional<std::string> require_rows_and_outputs(const ProcessStart& start) {
  const PreparedProcess& prepared = start.prepared;
  if (!prepared.dataset) return std::nullopt;
  std::optional<std::string> first_prompt =
      check_rows(*prepared.dataset, prepared.plan(), prepared.facts);
  process::require_outputs(prepared.settings());
  return first_prompt;
}

void add_work(const process::RowSupervisorReport& report, process::StartFigures& figures) {
  figures.seconds += report.seconds;
  figures.rows += report.work.rows;
  figures.new_tokens += report.work.new_tokens;
  figures.prompt_tokens += report.work.prompt_tokens;
  figures.workers_lost += report.deaths;
  for (const auto& [stage, spent] : report.work.seconds_by_stage)
    figures.seconds_by_stage[stage] += spent;
}

ProcessResult work_and_publish(const ProcessStart& start, const telemetry::RunFolder& folder,
                               const ProcessLedger& ledger) {
  process::StartFigures figures{.workers = start.prepared.workers.count};
  for (;;) {
    add_work(work_on_rows(start, folder, ledger), figures);
    const process::Publication done =
        process::publish_rows(*ledger.store, ledger.run, start.prepared.plan());
    if (done.reopened == 0) return conclude_process(start, folder, ledger.run, done, figures);
    start.warn(fmt::format("{} of the ledger cannot be read; they are computed again",
                           counted(done.reopened, "row")));
  }
}

void work_for_node_zero(const ProcessStart& start, const telemetry::RunFolder& folder,
                        const ProcessLedger& ledger) {
  const process::RowSupervisorReport report = work_on_rows(start, folder, ledger);
  start.log().info(fmt::format("no row is open; this node finished {}; node 0 publishes",
                               counted(report.work.rows, "row")));
}

ProcessResult run_on_node(const ProcessStart& start) {
  const std::optional<std::string> first_prompt = require_rows_and_outputs(start);
  const telemetry::RunFolder folder = open_process_folder(start);
  start.log().info(fmt::format("run folder {}", folder.path().string()));
  const auto nodes = process_nodes(start.settings().workers, folder.path(),
                                   process_run_name(start.settings()), start.log());
  const std::optional<FoundStore> found = find_store(start, *nodes);
  if (!found) return {};
  auto store = open_found_store(*nodes, found->url);
  nodes->enter(*store);
  const ProcessLedger ledger =
      process_ledger(start, *nodes, folder, *found, std::move(store), first_prompt);
  if (!nodes->publishes()) {
    work_for_node_zero(start, folder, ledger);
    return {};
  }
  ProcessResult result = work_and_publish(start, folder, ledger);
  nodes->finish(start.prepared.content());
  return result;
}

}  // namespace

int run_processing(Context& context, ProcessConfig& config) {
  const PreparedProcess prepared = prepare_process(context, config);
  const ProcessStart start{.context = context, .config = config, .prepared = prepared};
  if (config.flags.dry_run) return preview_process(start);
  const ProcessResult result = run_on_node(start);
  print_process_report(context, result);
  require_texts(start, result.rows);
  return 0;
}

nlohmann::ordered_json process_as_part(Context& context, ProcessConfig& config) {
  const PreparedProcess prepared = prepare_process(context, config);
  const ProcessStart start{.context = context, .config = config, .prepared = prepared};
  const ProcessResult result = run_on_node(start);
  require_texts(start, result.rows);
  return result.report;
}

}  // namespace convoy::apps
