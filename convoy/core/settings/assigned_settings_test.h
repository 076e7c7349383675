// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/resolve_train.h"

namespace convoy::testing {

using settings::TrainSettings;

// The result of one key=value: "" when accepted silently, "notice ...", or the error.
inline std::string fate(const std::string& assignment) {
  TrainSettings train;
  try {
    const config::Resolved resolved = settings::resolve_train(train, {.overrides = {assignment}});
    return resolved.notices().empty() ? "" : "notice " + resolved.notices()[0];
  } catch (const ConfigError& error) {
    return error.sentence();
  }
}

inline TrainSettings with(const std::vector<std::string>& assignments) {
  TrainSettings train;
  settings::resolve_train(train, {.overrides = assignments});
  return train;
}

}  // namespace convoy::testing
