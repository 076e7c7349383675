// SPDX-License-Identifier: Apache-2.0
//
// Describes a model folder, and the errors with which training and generating would refuse it, from
// the same functions that load it. Reads no weight values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/settings/model_check_flags.h"

namespace convoy::recipes {

struct ModelCheck {
  nlohmann::ordered_json facts;  // by name, as `--json` shows them; null where nothing is known
  std::vector<std::string> refusals;  // sentences; empty: the model can be used
  std::vector<std::string> notices;
};

// `name`: a folder, or a hub id in the local hub cache. Throws DataError when the folder does not
// exist or has no config.json.
ModelCheck check_model(const std::string& name, const settings::ModelCheckFlags& flags);

// Text for people.
std::string model_check_text(const ModelCheck& check);

}  // namespace convoy::recipes
