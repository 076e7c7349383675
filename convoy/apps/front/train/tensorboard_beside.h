// SPDX-License-Identifier: Apache-2.0
//
// Starts TensorBoard with a run, and ends it with the run or leaves it as one server for all runs
// in a folder. Optional: when it cannot start, a message says so and the run goes on.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::apps {

struct TensorBoardPlan {
  std::filesystem::path events;    // events of one run; with `stays`, folder of all runs
  std::filesystem::path log_file;  // TensorBoard's output
  int64_t port = 6006;             // port on this host
  // TensorBoard keeps running after the run. The next run in `events` finds it by the file
  // tensorboard.pid in that folder: "PROCESS PORT".
  bool stays = false;
};

class TensorBoardBeside {
 public:
  // `log` must outlive this. Construct it before ranks are started.
  TensorBoardBeside(TensorBoardPlan plan, const Log& log);
  ~TensorBoardBeside();
  TensorBoardBeside(const TensorBoardBeside&) = delete;
  TensorBoardBeside& operator=(const TensorBoardBeside&) = delete;

 private:
  void start(std::vector<std::string> program);
  void end();

  const TensorBoardPlan plan_;
  const Log& log_;
  processes::ChildProcess process_;  // a TensorBoard that ends with the run
};

}  // namespace convoy::apps
