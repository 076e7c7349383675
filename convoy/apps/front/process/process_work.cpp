// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/front/process/process_progress.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/farm/process/results/run_usage.h"
#include "convoy/farm/process/workers/rows_in_flight.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

std::string usage_file(int64_t node) {
  return node == 0 ? "devices.csv" : fmt::format("devices-{}.csv", node);
}

std::vector<std::string> worker_words(const ProcessStart& start,
                                      const telemetry::RunFolder& folder) {
  const Context& context = start.context;
  const ProcessWorkers& workers = start.prepared.workers;
  const std::string path = folder.path().string();
  if (start.prepared.servers)
    return {context.program.string(), "process-worker", "--run-folder", path};
  std::vector<std::string> words = {worker_program(context).string(),
                                    "process",
                                    "--run-folder",
                                    path,
                                    "--devices",
                                    workers.devices,
                                    "--workers-on-host",
                                    std::to_string(workers.count)};
  if (!context.common.verbose) words.emplace_back("--quiet");
  if (!context.common.quiet) words.emplace_back("--tell-busy-cores");
  return words;
}

process::RowSupervisorOptions supervision_of(const ProcessStart& start,
                                             const telemetry::RunFolder& folder) {
  const ProcessWorkers& workers = start.prepared.workers;
  return {.worker_command = worker_words(start, folder),
          .workers = workers.count,
          .environment = workers.environment,
          .log_folder = folder.logs_folder().string(),
          .max_crashes = static_cast<int>(start.settings().workers.max_tries),
          .label = "process",
          .asks_servers = start.prepared.servers.has_value(),
          .color = telemetry::color_choice(start.context.common.color),
          .log = start.log()};
}

process::WorkerAssignment assignment_of(const ProcessStart& start, const ProcessLedger& ledger) {
  const settings::WorkerSettings& wanted = start.settings().workers;
  const ProcessWorkers& workers = start.prepared.workers;
  return {.store = ledger.url,
          .run = ledger.run,
          .rows_in_flight = process::rows_in_flight(wanted, workers.hardware()),
          .num_workers = workers.count * wanted.num_nodes,
          .lease_ms = 1000 * wanted.lease_s,
          .max_tries = wanted.max_tries};
}

// Events of the node that publishes; `events` is null on the others.
void record_end(telemetry::EventLog* events, const process::RowSupervisorReport& report) {
  if (events != nullptr && report.stop_signal != 0)
    events->append(telemetry::EventKind::End, {{"status", "stopped"}});
}

void record_error(telemetry::EventLog* events, const std::exception& error) {
  if (events == nullptr) return;
  const auto* const own = dynamic_cast<const Error*>(&error);
  events->append(telemetry::EventKind::Failure,
                 {{"message", own != nullptr ? own->sentence() : error.what()}});
}

process::RowSupervisorReport supervise(const process::RowSupervisorOptions& options,
                                       const process::WorkerAssignment& task,
                                       telemetry::EventLog* events, ProcessProgress* progress) {
  try {
    process::RowSupervisorReport report = process::run_rows(options, task);
    if (progress != nullptr)
      progress->finish(static_cast<double>(report.work.new_tokens) /
                       std::max(1e-3, report.seconds));
    record_end(events, report);
    return report;
  } catch (const std::exception& error) {
    record_error(events, error);
    throw;
  }
}

void refuse_stopped(const process::RowSupervisorReport& report, const ProcessLedger& ledger) {
  if (report.stop_signal == 0) return;
  const int64_t open = ledger.store->counts(ledger.run.group).open;
  throw StopRequest(fmt::format("stopped by {}: {} of {} done, all finished texts are kept",
                                processes::signal_name(report.stop_signal), ledger.run.rows - open,
                                counted(ledger.run.rows, "row")),
                    {.hint = "the same command goes on"});
}

}  // namespace

process::RowSupervisorReport work_on_rows(const ProcessStart& start,
                                          const telemetry::RunFolder& folder,
                                          const ProcessLedger& ledger) {
  const settings::WorkerSettings& wanted = start.settings().workers;
  if (ledger.store->count_open(ledger.run.group, 1) > 0) look_at_servers(start);
  process::RunUsage usage(folder.path() / usage_file(wanted.node_rank),
                          wanted.telemetry_interval_s);
  std::optional<telemetry::EventLog> events;
  std::optional<ProcessProgress> progress;
  if (wanted.node_rank == 0) {
    events.emplace(folder.events_path(), start.log());
    events->append(telemetry::EventKind::Start, {{"task", "process"},
                                                 {"total_steps", ledger.run.rows},
                                                 {"workers", start.prepared.workers.count}});
    progress.emplace(*events, *ledger.store, ledger.run);
  }
  process::RowSupervisorOptions options = supervision_of(start, folder);
  options.tell = [&](const std::map<size_t, process::WorkerStatus>& statuses) {
    usage.add(statuses);
    if (progress) progress->add(statuses);
  };
  const process::RowSupervisorReport report =
      supervise(options, assignment_of(start, ledger), events ? &*events : nullptr,
                progress ? &*progress : nullptr);
  refuse_stopped(report, ledger);
  return report;
}

}  // namespace convoy::apps
