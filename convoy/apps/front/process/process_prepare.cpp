// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_prepare.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/process/process_memory.h"
#include "convoy/apps/front/process/process_rows_source.h"
#include "convoy/apps/front/process/process_sampling.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/process/parsing/wanted_columns.h"
#include "convoy/farm/process/request_check.h"
#include "convoy/farm/process/results/publish_rows.h"
#include "convoy/farm/process/workers/low_memory.h"

namespace convoy::apps {
namespace {

// Default number of rows in flight per server. A server with less capacity queues some of them.
constexpr int64_t kRowsOfAServer = 512;

// Returns the servers that the settings name. Empty: the workers load the model.
std::optional<remote::Servers> named_servers(const settings::ProcessSettings& settings) {
  if (!settings.remote.is_used()) return std::nullopt;
  return remote::read_servers(settings.remote, settings.model.name);
}

void settle_by_servers(const remote::Servers& servers, settings::ProcessSettings& settings) {
  settings.model.name = servers.model;
  if (settings.workers.batch_size.is_auto())
    settings.workers.batch_size = kRowsOfAServer * std::ssize(servers.addresses);
}

// Only the node that plans and publishes reads the data set, and every dry run does.
std::optional<data::Dataset> read_dataset(const ProcessConfig& config) {
  if (config.settings.workers.node_rank > 0 && !config.flags.dry_run) return std::nullopt;
  data::Dataset dataset = named_dataset(config.settings.data);
  process::check_outputs(config.settings, dataset);
  return dataset;
}

void settle_dtype(settings::ProcessSettings& settings, const process::ModelFacts& facts,
                  const ProcessWorkers& workers, const Log& log) {
  if (settings.model.dtype != "auto" || workers.devices == "http") return;
  sizing::DtypeQuestion question = workers.dtype_question();
  question.fp32_bytes = facts.parameters * static_cast<int64_t>(sizeof(float));
  question.saves_memory = settings.engine.low_memory;
  const sizing::DtypeChoice choice = sizing::choose_dtype(question);
  settings.model.dtype = choice.dtype;
  log.info(fmt::format("computing in {}", choice.text("--dtype ")));
}

void settle_by_model(ProcessConfig& config, const process::ModelFacts& facts,
                     const ProcessWorkers& workers, const Log& log) {
  process::settle_prompts(config.settings, facts);
  log.info(settle_process_sampling(config, facts.sampling));
  settle_dtype(config.settings, facts, workers, log);
}

// Settles the rung of the memory ladder. Returns the planned memory as text.
std::string settle_memory(settings::ProcessSettings& settings, const process::ModelFacts& facts,
                          const ProcessWorkers& workers) {
  std::string memory = process::fit_memory(settings, facts);
  process::require_possible_requests(settings, facts);
  const bool computes_here = workers.devices != "http";
  return memory.empty() && computes_here ? worker_memory(settings, facts, workers) : memory;
}

process::RowPipeline pipeline_of(const settings::ProcessSettings& settings) {
  return process::RowPipeline(
      process::PipelinePlan(settings, process::read_prompt_texts(settings.prompts, prompt_texts()),
                            process::read_stage_schemas(settings)));
}

PreparedProcess settled(const Context& context, ProcessConfig& config) {
  settings::ProcessSettings& settings = config.settings;
  const std::string model_named = settings.model.name;  // servers may replace it
  std::optional<remote::Servers> servers = named_servers(settings);
  if (servers) settle_by_servers(*servers, settings);
  process::ModelFacts facts = servers ? process::facts_of_served_model(servers->model, model_named)
                                      : process::read_model_facts(settings.model);
  std::optional<data::Dataset> dataset = read_dataset(config);
  ProcessWorkers workers =
      servers ? http_workers(settings.workers) : find_process_workers(context, settings.workers);
  settle_by_model(config, facts, workers, context.log());
  std::string memory = settle_memory(settings, facts, workers);
  return {.servers = std::move(servers),
          .facts = std::move(facts),
          .dataset = std::move(dataset),
          .workers = std::move(workers),
          .memory = std::move(memory),
          .pipeline = pipeline_of(settings)};
}

void say_notices(const ProcessStart& start) {
  if (start.config.flags.no_warnings) return;
  const std::optional<data::Dataset>& dataset = start.prepared.dataset;
  const bool is_local = dataset && dataset->hub_id.empty();
  for (const std::string& notice : start.config.resolved.notices()) start.log().info(notice);
  for (const std::string& notice : start.config.flags.notices(is_local)) start.log().info(notice);
}

void say_doubts(const ProcessStart& start) {
  const PreparedProcess& prepared = start.prepared;
  for (const std::string& note : prepared.workers.notes) start.warn(note);
  const std::string doubt = process::request_warnings(prepared.settings(), prepared.facts);
  if (!doubt.empty()) start.warn(doubt);
  for (const std::string& warning : process::prompt_warnings(prepared.plan())) start.warn(warning);
}

}  // namespace

PreparedProcess prepare_process(const Context& context, ProcessConfig& config) {
  try {
    PreparedProcess prepared = settled(context, config);
    const ProcessStart start{.context = context, .config = config, .prepared = prepared};
    say_notices(start);
    say_doubts(start);
    return prepared;
  } catch (const ConfigError& error) {
    throw config::placed(error, config.resolved);
  }
}

void look_at_servers(const ProcessStart& start) {
  const std::optional<remote::Servers>& servers = start.prepared.servers;
  if (!servers) return;
  const http::CurlLibrary curl;
  http::Client client(curl, servers->limits());
  remote::look_at_servers(*servers, client, start.log());
}

}  // namespace convoy::apps
