// SPDX-License-Identifier: Apache-2.0
//
// The rows of `convoy process` in their store: planned by node 0, joined by the others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "convoy/apps/front/process/process_nodes.h"
#include "convoy/apps/front/process/process_prepare.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/farm/process/ledger/ledger_plan.h"

namespace convoy::apps {

// The name of the run in its store. Starts with the same output have the same name, so the next one
// resumes the last one. The name does not depend on the working folder if the texts are in the
// store, because nodes without a common folder may work in folders of different names.
std::string process_run_name(const settings::ProcessSettings& settings);

struct FoundStore {
  std::string url;                  // maybe with a password
  std::optional<SharedRun> shared;  // data from node 0; empty on node 0 itself
};

// Other nodes wait here for node 0. Returns empty when the run of node 0 has ended.
std::optional<FoundStore> find_store(const ProcessStart& start, const ProcessNodes& nodes);

// Opens the store at `url`. Throws IoError that names node 0 when another node cannot reach the
// store of node 0.
std::unique_ptr<jobs::JobStore> open_found_store(const ProcessNodes& nodes, const std::string& url);

// A planned run and its store.
struct ProcessLedger {
  std::string url;
  std::unique_ptr<jobs::JobStore> store;
  process::RowRun run;
};

// Node 0 plans the rows, or reuses an earlier plan, and shares the plan. Other nodes wait for it.
// Writes the files that the workers read. `first_prompt`: the prompt to show. Blocks.
ProcessLedger process_ledger(const ProcessStart& start, const ProcessNodes& nodes,
                             const telemetry::RunFolder& folder, const FoundStore& found,
                             std::unique_ptr<jobs::JobStore> store,
                             const std::optional<std::string>& first_prompt);

}  // namespace convoy::apps
