// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard that is started with a run and ended with it. A run needs none: where it can not be started, that is said,
// and the run goes on.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/base/log.h"
#include "convoy/launch/rank_process.h"

namespace convoy::apps {

class TensorBoardBeside {
 public:
  // Shows the events below `events` on `port` of this host; its own words go to `log_file`. `log` outlives this.
  // Construct before ranks are started.
  TensorBoardBeside(const std::filesystem::path& events, const std::filesystem::path& log_file,
                    int64_t port, const Log& log);
  ~TensorBoardBeside();
  TensorBoardBeside(const TensorBoardBeside&) = delete;
  TensorBoardBeside& operator=(const TensorBoardBeside&) = delete;

 private:
  void start(const std::vector<std::string>& program, int64_t port);
  bool has_ended(int limit_ms) const;

  const std::filesystem::path events_;
  const std::filesystem::path log_file_;
  const Log& log_;
  launch::RankProcess process_;
};

}  // namespace convoy::apps
