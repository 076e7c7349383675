// SPDX-License-Identifier: Apache-2.0
//
// Nodes that meet in the run folder, which all of them can read: a file there names the store.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/front/process/process_nodes.h"

namespace convoy::apps {

class FolderNodes : public ProcessNodes {
 public:
  FolderNodes(const settings::WorkerSettings& workers, std::filesystem::path run_folder,
              const Log& log);
  ~FolderNodes() override;

  std::string store() const override;
  void enter(jobs::JobStore& /*store*/) override {}
  void share(const SharedRun& run) const override;
  void finish(const nlohmann::json& configuration) override;
  std::optional<SharedRun> wait_for_share(const nlohmann::json& configuration) const override;

 private:
  std::filesystem::path shared_file() const { return folder_ / "shared.json"; }
  // "planning", "open", "stopped" or "finished", with the facts of that state.
  void write_state(const char* state, nlohmann::json facts) const;
  void leave_unfinished() const;
  std::filesystem::path member_file() const;

  std::filesystem::path folder_;
  bool finished_ = false;
};

}  // namespace convoy::apps
