// SPDX-License-Identifier: Apache-2.0
//
// Flags that every kind of sweep has. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::sweep {

struct RunFlags {
  std::string store;
  int64_t workers = 0;
  int64_t cores_per_worker = 0;
  double timeout = 3600;
  int64_t max_attempts = 3;
  bool keep_going = false;
  double lease = 60;
  std::string results_dir = "results";
  std::string log_dir;
  std::string log_level = "info";
  std::string on_end;
  std::string tensorboard_dir;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "where tasks and results are kept: a file, a PostgreSQL URL or \"host=... dbname=...\"; "
          "default sweep.db in --checkpoint-dir or --results-dir");
    visit("workers", workers, "worker processes; 0 = one per usable CPU").at_least(0).at_most(4096);
    visit("cores_per_worker", cores_per_worker, "cores bound to each worker; 0 = not bound")
        .at_least(0);
    visit("timeout", timeout,
          "seconds a range, a descent, a command or one cell of a --persistent command may take; "
          "0 = any")
        .at_least(0);
    visit("max_attempts", max_attempts,
          "tries of a range before its cell has failed; a program that ends well without a result "
          "is not tried again")
        .at_least(1);
    visit("keep_going", keep_going,
          "go on where the first three cells, and those beside them, all fail in one way");
    visit("lease", lease, "seconds after which the work of a silent host goes to others")
        .at_least(2);
    visit("results_dir", results_dir, "folder of result tables");
    visit("log_dir", log_dir,
          "folder of sweep.log: messages with time, level and worker, progress, the workers' "
          "stderr; empty = none");
    visit("log_level", log_level,
          "debug, info, warning or error: the least that sweep.log and the terminal show; debug is "
          "the work of each worker");
    visit("on_end", on_end,
          "command for the shell when the sweep has ended or stopped: CONVOY_SWEEP_NAME, "
          "CONVOY_SWEEP_END (a sentence) and CONVOY_SWEEP_CODE (the exit code) tell it how");
    visit("tensorboard_dir", tensorboard_dir,
          "folder for TensorBoard's HParams page: parameters and results of every cell, written at "
          "the end; empty = none");
    visit("dry_run", dry_run, "print the plan and compute nothing");
  }
};

}  // namespace convoy::sweep
