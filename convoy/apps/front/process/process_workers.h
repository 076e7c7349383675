// SPDX-License-Identifier: Apache-2.0
//
// The workers of `convoy process` on one host: their number, devices and start.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/process_settings.h"
#include "convoy/generate/scheduler/engine_defaults.h"
#include "convoy/model/sizing/compute_dtype.h"

namespace convoy::apps {

struct ProcessWorkers {
  std::string devices;    // "cpu", "cuda", or "http" when servers compute
  bool has_bf16 = false;  // true when all GPUs support bf16
  int64_t count = 1;
  std::vector<std::map<std::string, std::string>> environment = {};  // by worker
  std::vector<std::string> notes = {};

  // The input of sizing::choose_dtype() for model.dtype: auto. All workers of a run have one dtype.
  sizing::DtypeQuestion dtype_question() const;
  scheduler::Hardware hardware() const {
    return devices == "cuda" ? scheduler::Hardware::Gpu : scheduler::Hardware::Cpu;
  }
  std::string text() const;  // "2 workers on cuda"
};

// The workers that send requests to servers: one, unless the settings ask for more.
ProcessWorkers http_workers(const settings::WorkerSettings& settings);

// Read-only. Throws ConfigError, DeviceError.
ProcessWorkers find_process_workers(const Context& context,
                                    const settings::WorkerSettings& settings);

}  // namespace convoy::apps
