// SPDX-License-Identifier: Apache-2.0
//
// Nodes that share no folder and meet in the store. It is the PostgreSQL server that all of them
// name, or node 0's own at master_addr:master_port. That server's password comes from the job
// token, the secret that all nodes have in their environment.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/process/process_nodes.h"

namespace convoy::apps {

class StoreNodes : public ProcessNodes {
 public:
  StoreNodes(const settings::WorkerSettings& workers, const std::filesystem::path& run_folder,
             std::string run_name, const Log& log);
  ~StoreNodes() override;

  std::string store() const override { return url_; }
  void enter(jobs::JobStore& store) override;
  void share(const SharedRun& /*run*/) const override {}            // the plan is in the store
  void finish(const nlohmann::json& /*configuration*/) override {}  // the rows are in the store
  // Waits for the store to answer.
  std::optional<SharedRun> wait_for_share(const nlohmann::json& configuration) const override;

 private:
  int64_t member_group(jobs::JobStore& store) const;
  void leave() const;
  void wait_for_members() const;

  std::string run_name_;
  std::string url_;
  int64_t member_ = 0;  // this node's task in the store; 0 = none
};

}  // namespace convoy::apps
