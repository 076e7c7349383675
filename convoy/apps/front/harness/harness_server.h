// SPDX-License-Identifier: Apache-2.0
//
// A server of the model that is measured, `convoy serve` on a free port of this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/apps/front/harness/harness_folder.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::apps {

// True when the user wants the command to end.
using StopTest = std::function<bool()>;

// The last lines of a log.
std::string last_lines(std::string text);

// Ends the process and its group, and reaps it.
void end_process(const processes::ChildProcess& process);

class HarnessServer {
 public:
  // Blocks until the server listens. `words`: flags of `convoy serve`. The server's messages go
  // into server.log in `folder`. Throws the server's own error when it ends before it listens,
  // StopRequest once `stop` returns true.
  HarnessServer(const std::filesystem::path& program, const std::vector<std::string>& words,
                HarnessFolder folder, const StopTest& stop);
  ~HarnessServer();  // ends the server
  HarnessServer(const HarnessServer&) = delete;
  HarnessServer& operator=(const HarnessServer&) = delete;

  const std::string& url() const { return url_; }  // "http://127.0.0.1:PORT/v1"
  // Tokens that the model reads, with the answer. Throws NetworkError.
  int64_t max_positions() const;

 private:
  HarnessFolder folder_;
  processes::ChildProcess process_;
  std::string url_;
};

}  // namespace convoy::apps
