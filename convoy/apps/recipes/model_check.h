// SPDX-License-Identifier: Apache-2.0
//
// What a model folder is and holds, and with what words training and generating would refuse it:
// they are those of the very functions that load it. No value of a weight is read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/settings/model_check_flags.h"

namespace convoy::recipes {

struct ModelCheck {
  nlohmann::ordered_json facts;  // by name, as `--json` shows them; null where nothing is known
  std::vector<std::string> refusals;  // sentences; none: it can be used
  std::vector<std::string> notices;
};

// `name`: a folder, or a hub id found in the local hub cache. Throws DataError where there is no
// such folder, or no config.json in it.
ModelCheck check_model(const std::string& name, const settings::ModelCheckFlags& flags);

// For people.
std::string model_check_text(const ModelCheck& check);

}  // namespace convoy::recipes
