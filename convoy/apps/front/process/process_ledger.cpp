// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_ledger.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "convoy/apps/front/process/process_rows_source.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/run_files.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

process::RunIdentity run_identity(const ProcessStart& start, const telemetry::RunFolder& folder,
                                  const std::string& data_hash, const nlohmann::json& selection) {
  process::RunIdentity identity{.name = process_run_name(start.settings()),
                                .folder = folder.path() / "rows",
                                .configuration = start.prepared.content(),
                                .data_hash = data_hash,
                                .texts_in_store = start.settings().workers.texts_in_store};
  // A run over other rows of the same files has another identity.
  if (selection.is_object()) identity.configuration["data"].update(selection);
  return identity;
}

std::map<std::string, std::string> origins_of(const config::Resolved& resolved) {
  std::map<std::string, std::string> origins;
  for (const config::ResolvedValue& value : resolved.values()) origins[value.path] = value.origin;
  return origins;
}

// Writes the settings for the workers of this node.
void write_worker_settings(const ProcessStart& start, const telemetry::RunFolder& folder) {
  const config::Resolved& resolved = start.config.resolved;
  process::write_prompts(folder.path(), start.prepared.plan());
  folder.write_config(resolved.yaml(), resolved.json(), origins_of(resolved));
}

void write_run_record(const ProcessStart& start, const telemetry::RunFolder& folder,
                      const std::string& data_hash) {
  const ProcessWorkers& workers = start.prepared.workers;
  const config::Resolved& resolved = start.config.resolved;
  telemetry::RunIdentity record{.name = process_run_name(start.settings()), .task = "process"};
  record.config_yaml = resolved.yaml();
  record.config_json = resolved.json().dump();
  record.origins = origins_of(resolved);
  record.hosts = {telemetry::host_name()};
  record.devices.assign(static_cast<size_t>(workers.count), workers.devices);
  record.world_size = workers.count;
  record.threads = start.settings().workers.threads;
  record.data_hashes = {{start.prepared.dataset->name, data_hash}};
  folder.write_identity(record);
}

telemetry::ProgressOptions plan_progress(const Context& context) {
  telemetry::ProgressOptions options{.color = telemetry::color_choice(context.common.color)};
  if (context.log().level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  return options;
}

process::RowRun join_plan(const ProcessStart& start, const telemetry::RunFolder& folder,
                          jobs::JobStore& store, const SharedRun& shared) {
  if (start.settings().workers.texts_in_store) write_worker_settings(start, folder);
  return process::wait_for_plan(
      store, run_identity(start, folder, shared.data_hash, shared.selection),
      std::chrono::minutes(10), [] { return true; }, start.log());
}

void reopen_failed(const ProcessStart& start, jobs::JobStore& store, const process::RowRun& run) {
  const int64_t again = run.is_new ? 0 : process::reopen_engine_errors(store, run);
  if (again > 0)
    start.log().info(
        fmt::format("{} in state engine_error: computed again", counted(again, "row")));
}

process::RowRun plan_run(const ProcessStart& start, const ProcessNodes& nodes,
                         const telemetry::RunFolder& folder, jobs::JobStore& store,
                         const std::string& url) {
  const PreparedProcess& prepared = start.prepared;
  const data::Dataset& dataset = *prepared.dataset;
  const std::string data_hash = data::dataset_hash(dataset);
  const nlohmann::json selection = selection_of(dataset, start.settings().data);
  const process::RowRun run = process::plan_rows(
      store,
      {.run = run_identity(start, folder, data_hash, selection),
       .rows = selected_rows(dataset, start.settings().data),
       .expected_cost =
           [&](const process::InputRow& row) { return prepared.pipeline.expected_cost(row); },
       .keep_apart = start.config.flags.keep_apart,
       .progress = plan_progress(start.context)});
  reopen_failed(start, store, run);
  write_worker_settings(start, folder);
  write_run_record(start, folder, data_hash);
  nodes.share({url, prepared.content(), data_hash, selection});
  return run;
}

}  // namespace

std::string process_run_name(const settings::ProcessSettings& settings) {
  if (!settings.run_name.empty()) return settings.run_name;
  const fs::path named = settings.output.path;
  const fs::path output =
      (settings.workers.texts_in_store ? named : fs::absolute(named)).lexically_normal();
  return fmt::format("{}-{}", output.stem().string(), sha256_hex(output.string()).substr(0, 8));
}

std::optional<FoundStore> find_store(const ProcessStart& start, const ProcessNodes& nodes) {
  if (nodes.publishes()) return FoundStore{.url = nodes.store(), .shared = std::nullopt};
  std::optional<SharedRun> shared = nodes.wait_for_share(start.prepared.content());
  if (!shared) return std::nullopt;
  return FoundStore{.url = shared->store, .shared = shared};
}

std::unique_ptr<jobs::JobStore> open_found_store(const ProcessNodes& nodes,
                                                 const std::string& url) {
  try {
    return jobs::open_store(url);
  } catch (const IoError& error) {
    if (nodes.publishes()) throw;
    throw IoError(fmt::format("the store of node 0 cannot be reached: {}", error.what()),
                  {.hint = "its server ends with node 0: check that node 0 runs, and restart it "
                           "with the same command"});
  }
}

ProcessLedger process_ledger(const ProcessStart& start, const ProcessNodes& nodes,
                             const telemetry::RunFolder& folder, const FoundStore& found,
                             std::unique_ptr<jobs::JobStore> store,
                             const std::optional<std::string>& first_prompt) {
  ProcessLedger ledger{.url = found.url, .store = std::move(store), .run = {}};
  if (found.shared) {
    ledger.run = join_plan(start, folder, *ledger.store, *found.shared);
    return ledger;
  }
  ledger.run = plan_run(start, nodes, folder, *ledger.store, found.url);
  if (!start.prepared.memory.empty()) start.log().info("memory: " + start.prepared.memory);
  if (first_prompt) start.log().info("first prompt:\n" + *first_prompt);
  return ledger;
}

}  // namespace convoy::apps
