// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs a command that looks at devices is about: those that this job sees, or all of the
// host.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "convoy/machine/monitor/devices.h"

namespace convoy::apps {

struct VisibleGpus {
  std::optional<std::set<std::string>> uuids;  // nothing: all
  int num_hidden = 0;                          // whole GPUs
  std::string hidden_by;                       // the variable that hides them
};

// By CUDA_VISIBLE_DEVICES, and by HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES where the GPUs are
// AMD's. No driver is opened when none of them is set.
VisibleGpus visible_gpus(const monitor::DeviceSources& sources,
                         const std::map<std::string, std::string>& environment, bool all = false);

inline constexpr const char* kAllGpusHelp =
    "all GPUs of the host, also those that CUDA_VISIBLE_DEVICES hides";

}  // namespace convoy::apps
