// SPDX-License-Identifier: Apache-2.0
//
// How the nodes of one run of `convoy process` find its store: the run folder, which all of them
// see, says where it is. Node 0 keeps a private PostgreSQL server where no other store is named.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/private_store.h"
#include "convoy/core/settings/process_settings.h"

namespace convoy::apps {

// What node 0 tells the others of the run.
struct SharedRun {
  std::string store;  // URL, maybe with a password
  nlohmann::json configuration;
  std::string data_hash;
  nlohmann::json selection;  // of its rows
};

class ProcessNodes {
 public:
  // On node 0 of several, and without a store that is named, this starts the server. Throws as
  // PrivateStore.
  ProcessNodes(const settings::WorkerSettings& workers, std::filesystem::path run_folder,
               const Log& log);
  // Waits for the nodes that still read from this one's server.
  ~ProcessNodes();

  bool publishes() const { return workers_.node_rank == 0; }
  // Node 0: the store.
  std::string store() const;
  // Node 0: what the others need, for them to find.
  void share(const SharedRun& run) const;
  // Node 0: the run is published; whoever comes now is told so.
  void finish(const nlohmann::json& configuration);
  // The others: what node 0 shares, once it is of this configuration; nothing where that run has
  // ended. Says what it waits for. Waits some minutes, and throws ConfigError that says what is
  // missing or differs.
  std::optional<SharedRun> wait_for_share(const nlohmann::json& configuration) const;

 private:
  std::filesystem::path shared_file() const { return folder_ / "shared.json"; }
  // "planning", "open", "stopped" or "finished", with what goes with it.
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
