// SPDX-License-Identifier: Apache-2.0
//
// Whether a training fits into the devices of a machine, by formula: for a model of which its name
// or its config.json is known, before its weights are there.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::apps {

struct MemoryFit {
  sizing::Machine machine;
  sizing::EstimateRequest request;  // with one row where the batch is measured at the start
  sizing::MemoryPlan memory = {};   // of a rank
  int64_t most_rows = 0;            // of a micro-batch that fit; 0 = not even one

  bool fits() const { return memory.total_bytes() <= machine.device_bytes; }
  // One line; "does not fit" is in it where it does not.
  std::string text() const;
  nlohmann::ordered_json to_json() const;
};

// By its config.json, or by its name; nothing where neither is known here.
std::optional<architecture::DecoderSpec> sizes_of(const settings::ModelSettings& model);

// `ranks`: of the whole job, 0 = one on each device. Nothing where the memory of the machine is not
// known.
std::optional<MemoryFit> memory_fit(const architecture::DecoderSpec& model,
                                    const settings::TrainSettings& settings,
                                    sizing::Machine machine, int64_t ranks);

// Whether weights of it are on this host.
bool has_weights(const settings::ModelSettings& model);

// `hardware` as for machine_of(); empty: that of the preset that `resolved` starts from, else what
// is here.
sizing::Machine machine_of_config(const std::string& hardware, const config::Resolved& resolved);

// Says it, as a warning where it does not fit.
void say_memory_fit(const MemoryFit& fit, const Log& log);

}  // namespace convoy::apps
