// SPDX-License-Identifier: Apache-2.0
//
// Selects the GPUs for commands that show devices: those visible to this job, or all of the host.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "convoy/machine/monitor/gpus/devices.h"

namespace convoy::apps {

struct VisibleGpus {
  std::optional<std::set<std::string>> uuids;  // UUIDs of the visible GPUs; nothing: all
  int num_hidden = 0;                          // number of hidden whole GPUs
  std::string hidden_by;                       // the variable that hides them
};

// Reads CUDA_VISIBLE_DEVICES, and on AMD HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES. Opens no
// driver when none of them is set.
VisibleGpus visible_gpus(const monitor::DeviceSources& sources,
                         const std::map<std::string, std::string>& environment, bool all = false);

inline constexpr const char* kAllGpusHelp =
    "all GPUs of the host, also those that CUDA_VISIBLE_DEVICES hides";

}  // namespace convoy::apps
