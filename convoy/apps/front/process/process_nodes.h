// SPDX-License-Identifier: Apache-2.0
//
// How the nodes of one run of `convoy process` find its store and each other: by a folder that all
// of them see, or by the store alone. Node 0 starts a private PostgreSQL server when no other store
// is configured.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/launch/private_store.h"
#include "convoy/core/base/log.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/settings/process_settings.h"

namespace convoy::apps {

// The data about the run that node 0 shares with the other nodes.
struct SharedRun {
  std::string store;  // URL, maybe with a password
  nlohmann::json configuration;
  std::string data_hash;     // empty: the hash is in the store's plan
  nlohmann::json selection;  // rows that node 0 selected; null: not shared
};

// On node 0 the destructor waits for the nodes that still read from this node's server.
class ProcessNodes {
 public:
  virtual ~ProcessNodes() = default;
  ProcessNodes(const ProcessNodes&) = delete;
  ProcessNodes& operator=(const ProcessNodes&) = delete;

  bool publishes() const { return workers_.node_rank == 0; }
  // Node 0: returns the URL or file of the store.
  virtual std::string store() const = 0;
  // Every node calls this once the store is open, to announce that it is at work.
  virtual void enter(jobs::JobStore& store) = 0;
  // Node 0: publishes the data that the others need.
  virtual void share(const SharedRun& run) const = 0;
  // Node 0: the run is finished; nodes that start later read this.
  virtual void finish(const nlohmann::json& configuration) = 0;
  // Other nodes: returns node 0's data once they match this configuration; empty when that run has
  // ended. Logs the reason for waiting. After some minutes throws an error that names the missing
  // or different item.
  virtual std::optional<SharedRun> wait_for_share(const nlohmann::json& configuration) const = 0;

 protected:
  // A node waits this long for node 0.
  static constexpr std::chrono::minutes kWaitForNodeZero{10};
  static constexpr std::chrono::seconds kSayWaitingEvery{60};
  // Node 0 waits this long for nodes at work. Working nodes notice the end of the run within a
  // second, but a node that died never removes its mark.
  static constexpr std::chrono::seconds kWaitForMembers{20};
  static constexpr std::chrono::milliseconds kLookEvery{200};

  ProcessNodes(settings::WorkerSettings workers, const Log& log)
      : workers_(std::move(workers)), log_(log) {}

  // Starts the store's server, on node 0, with its data in the run folder. `password`: empty = a
  // new one.
  void start_server(const std::filesystem::path& run_folder, const std::string& password = {});

  settings::WorkerSettings workers_;
  Log log_;
  std::optional<PrivateStore> server_;
};

// With several nodes and no configured store, node 0 starts a server here. Throws what PrivateStore
// throws, and ConfigError for nodes that share neither a folder nor a secret.
std::unique_ptr<ProcessNodes> process_nodes(const settings::WorkerSettings& workers,
                                            const std::filesystem::path& run_folder,
                                            const std::string& run_name, const Log& log);

}  // namespace convoy::apps
