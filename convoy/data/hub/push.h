// SPDX-License-Identifier: Apache-2.0
//
// Uploads files as one commit of a model repository of the hub. Files that the hub has are not sent
// again, so the same push goes on after one that was stopped or killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/data/hub/hub_settings.h"
#include "convoy/data/hub/push_client.h"
#include "convoy/data/hub/push_file.h"
#include "convoy/data/hub/transfer_progress.h"

namespace convoy::hub {

struct PushPlan {
  PushTarget target;
  std::vector<PushFile> files;
  std::string message;      // first line of the commit
  bool is_private = false;  // counts for a repository that is made
  int64_t num_parallel = 4;
};

// The fate of a file.
enum class PushedAs { Small, Large, Unchanged, Ignored };
std::string_view pushed_word(PushedAs how);

struct PushResult {
  bool is_new = false;        // the repository was made
  CommitResult commit;        // without changes, the newest commit and an empty url
  std::vector<PushedAs> how;  // by file of the plan
  int64_t sent_bytes = 0;     // bytes of large files
};

// Throws ConfigError for a name that no repository or branch may have.
void require_push_name(const PushTarget& target);

// Blocks until it is done, or until `stop` returns true; then it throws StopRequest. Throws the
// errors of PushClient, and ConfigError for a wrong name, no token, or a hub that may not be asked.
PushResult push(const PushPlan& plan, const HubSettings& settings, const StopTest& stop,
                TransferProgress& progress, const Log& log);

}  // namespace convoy::hub
