// SPDX-License-Identifier: Apache-2.0
//
// The facts with which other programs' records of a run begin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy::reports {

struct ReportRun {
  std::filesystem::path folder = {};  // the run folder
  std::string id = {};                // letters and digits; the same in a resumed run
  std::string name = {};              // shown
  std::string project = {};           // groups runs; UTF-8
  // The resolved settings.
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  int64_t resume_step = -1;  // rows of later steps are dropped; -1 = all
};

}  // namespace convoy::reports
