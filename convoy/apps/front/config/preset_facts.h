// SPDX-License-Identifier: Apache-2.0
//
// Describes each preset by the first comment lines of its file, with the memory that a machine
// preset needs there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::apps {

struct PresetFacts {
  std::string name;
  std::string summary = {};  // the first comment line
  // Set for presets with a line "# machine: NAME"; else null.
  const sizing::Machine* machine = nullptr;
  settings::TrainSettings settings = {};
  sizing::MemoryPlan memory = {};  // for one device

  bool fits() const { return memory.total_bytes() <= machine->device_bytes; }
};

// All presets of this build, by name.
std::vector<PresetFacts> preset_facts();

// The memory estimate request of a run with these settings. `batch_size: auto` counts as one row.
sizing::EstimateRequest estimate_request(const settings::TrainSettings& settings,
                                         const sizing::Machine& machine);
// The table that `convoy config presets` prints.
std::string machine_presets_text(const std::vector<PresetFacts>& presets);

}  // namespace convoy::apps
