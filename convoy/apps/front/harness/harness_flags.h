// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy eval --tasks`.
#pragma once

#include <string>

#include "convoy/core/config/flags.h"
#include "convoy/core/settings/harness_settings.h"

namespace convoy::apps {

struct HarnessFlags : settings::HarnessSettings {
  std::string output_dir;
  std::string adapter;

  template <class Visitor>
  void fields(Visitor& visit) {
    shared_fields(visit);
    visit("limit", limit, kLimitHelp).at_least(0);
    visit("output_dir", output_dir,
          "folder for tasks.json and the harness' own files; empty = print only")
        .flag("output")
        .alias("o");
    visit("adapter", adapter, "LoRA adapter folder over the model");
  }
};

}  // namespace convoy::apps
