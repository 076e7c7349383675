// SPDX-License-Identifier: Apache-2.0
//
// Says what each preset is for, by the first comment lines of its file, and how much memory a
// preset of a machine takes there.
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
  // Of presets with a line "# machine: NAME"; else none.
  const sizing::Machine* machine = nullptr;
  settings::TrainSettings settings = {};
  sizing::MemoryPlan memory = {};  // of one device

  bool fits() const { return memory.total_bytes() <= machine->device_bytes; }
};

// Of all presets of this build, by name.
std::vector<PresetFacts> preset_facts();

// The question whose answer is the memory of a run with these settings. `batch_size: auto` counts
// as one row.
sizing::EstimateRequest estimate_request(const settings::TrainSettings& settings,
                                         const sizing::Machine& machine);

// The table that `convoy config presets` prints.
std::string machine_presets_text(const std::vector<PresetFacts>& presets);

}  // namespace convoy::apps
