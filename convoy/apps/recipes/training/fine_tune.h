// SPDX-License-Identifier: Apache-2.0
//
// `convoy train` on one rank: data, model, adapter, strategy, optimizer, loop, export.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/apps/recipes/training/agreement.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/environment.h"

namespace convoy::recipes {

struct FineTuneRequest {
  // The launcher has made this folder. The launcher of rank 0 holds its lock.
  std::filesystem::path run_folder;
  SettingsSource settings{};
  std::string devices = "cpu";               // as for device::take_rank_device
  std::vector<std::string> forced_fields{};  // stamp fields that may differ from the checkpoint
  bool plan_only = false;                    // --dry-run: print the plan, train nothing
  bool tell_busy_cores = false;              // logs when other programs use the cores
  telemetry::ColorChoice color = telemetry::ColorChoice::Auto;
};

// Collective over the ranks of the environment. Blocks. Returns Done, or Stopped when a stop was
// requested: the state is saved, where a step had been trained. Throws convoy::Error.
ExitCode fine_tune(const FineTuneRequest& request, const std::atomic<bool>& stop_requested,
                   const Log& log);

}  // namespace convoy::recipes
