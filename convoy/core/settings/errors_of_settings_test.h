// SPDX-License-Identifier: Apache-2.0
//
// Settings of a training from words, for tests of what their checks refuse.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/resolve_train.h"

namespace convoy::settings {

// The errors of these settings with their hints; empty: none.
inline std::string errors_of(std::vector<std::string> words, Wanted wanted = Wanted::Anything) {
  TrainSettings settings;
  config::Sources sources;
  sources.overrides = std::move(words);
  try {
    resolve_train(settings, sources, wanted);
  } catch (const ConfigError& error) {
    return error.sentence();
  }
  return {};
}

}  // namespace convoy::settings
