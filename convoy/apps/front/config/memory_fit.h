// SPDX-License-Identifier: Apache-2.0
//
// Estimates by formula whether a training fits into a machine's devices, for a model whose name or
// config.json is known, without its weights.
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
  sizing::EstimateRequest request;  // one row when the batch is measured at the start
  sizing::MemoryPlan memory = {};   // for one rank
  // Largest micro-batch that fits, in rows; 0 = not even one row fits.
  int64_t most_rows = 0;

  bool fits() const { return memory.total_bytes() <= machine.device_bytes; }
  // One line. Contains "does not fit" when it does not fit.
  std::string text() const;
  nlohmann::ordered_json to_json() const;
};

// Returns the sizes of the model from its config.json, or else of the known model with that
// name. Empty when neither exists.
std::optional<architecture::DecoderSpec> sizes_of(const settings::ModelSettings& model);

// `ranks`: number of ranks in the whole job, 0 = one per device. Empty when the machine's memory is
// unknown.
std::optional<MemoryFit> memory_fit(const architecture::DecoderSpec& model,
                                    const settings::TrainSettings& settings,
                                    sizing::Machine machine, int64_t ranks);

// True when weights of the model are on this host.
bool has_weights(const settings::ModelSettings& model);

// `hardware` as for machine_of(); empty: the machine of the preset in `resolved`, else this
// machine.
sizing::Machine machine_of_config(const std::string& hardware, const config::Resolved& resolved);

// Logs whether the training fits into memory, as a warning when it does not fit.
void say_memory_fit(const MemoryFit& fit, const Log& log);

}  // namespace convoy::apps
