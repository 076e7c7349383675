// SPDX-License-Identifier: Apache-2.0
//
// `convoy process` before its rows are read. Settles the settings that depend on the servers, the
// model and the machine.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/process/process_config.h"
#include "convoy/apps/front/process/process_workers.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/model_facts.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/remote/servers.h"

namespace convoy::apps {

struct PreparedProcess {
  std::optional<remote::Servers> servers;  // servers that compute; empty: workers load the model
  process::ModelFacts facts;
  std::optional<data::Dataset> dataset;  // empty on a node that joins
  ProcessWorkers workers;
  std::string memory;  // the rung of the ladder, in words; empty = there is no budget
  process::RowPipeline pipeline;

  const process::PipelinePlan& plan() const { return pipeline.plan(); }
  const settings::ProcessSettings& settings() const { return plan().settings; }
  // Everything that determines the results of the rows.
  nlohmann::json content() const { return plan().content(facts.identity); }
};

// Every later stage reads this. The three referenced objects must outlive it.
struct ProcessStart {
  const Context& context;
  const ProcessConfig& config;
  const PreparedProcess& prepared;

  const settings::ProcessSettings& settings() const { return prepared.settings(); }
  Log log() const { return context.log(); }
  void warn(const std::string& text) const {  // does nothing with --no-warnings
    if (!config.flags.no_warnings) log().warning(text);
  }
};

// Settles `config.settings`. Logs what was chosen, and settings that look like a mistake. Reads the
// model's small files. Throws ConfigError that names where the value was set, DataError,
// DeviceError.
PreparedProcess prepare_process(const Context& context, ProcessConfig& config);

// When servers compute, asks them for their models.
void look_at_servers(const ProcessStart& start);

}  // namespace convoy::apps
