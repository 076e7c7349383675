// SPDX-License-Identifier: Apache-2.0
//
// Finds the store for the nodes of one run of `convoy process`. The run folder, which all nodes can
// read, names it. Node 0 starts a private PostgreSQL server when no other store is configured.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/private_store.h"
#include "convoy/core/settings/process_settings.h"

namespace convoy::apps {

// The data about the run that node 0 shares with the other nodes.
struct SharedRun {
  std::string store;  // URL, maybe with a password
  nlohmann::json configuration;
  std::string data_hash;
  nlohmann::json selection;  // selection of its rows
};

class ProcessNodes {
 public:
  // On node 0 of several, without a configured store, this starts the server. Throws as
  // PrivateStore.
  ProcessNodes(const settings::WorkerSettings& workers, std::filesystem::path run_folder,
               const Log& log);
  // Waits for the nodes that still read from this node's server.
  ~ProcessNodes();

  bool publishes() const { return workers_.node_rank == 0; }
  // Node 0: returns the store.
  std::string store() const;
  // Node 0: publishes the data that the others need.
  void share(const SharedRun& run) const;
  // Node 0: the run is finished; nodes that start later read this.
  void finish(const nlohmann::json& configuration);
  // Other nodes: returns node 0's data once they match this configuration; empty when that run has
  // ended. Logs the reason for waiting. After some minutes throws ConfigError that names the
  // missing or different item.
  std::optional<SharedRun> wait_for_share(const nlohmann::json& configuration) const;

 private:
  std::filesystem::path shared_file() const { return folder_ / "shared.json"; }
  // "planning", "open", "stopped" or "finished", with the facts of that state.
  void write_state(const char* state, nlohmann::json facts) const;
  void leave_unfinished() const;
  std::filesystem::path member_file() const;

  settings::WorkerSettings workers_;
  std::filesystem::path folder_;
  Log log_;
  std::optional<PrivateStore> server_;
  bool finished_ = false;
};

}  // namespace convoy::apps
