// SPDX-License-Identifier: Apache-2.0
//
// Reads the problems and values that an independent program (tests/golden/sweep/make_mf.py) wrote.
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/farm/experiments/mf/mf_problem.h"

namespace convoy::experiments {

inline nlohmann::json mf_golden() {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/tests/golden/sweep/mf.json");
  return nlohmann::json::parse(file);
}

// Returns the parameters of a cell with the problem of one entry of the golden file.
inline std::string mf_golden_parameters(const nlohmann::json& golden, const nlohmann::json& entry) {
  nlohmann::json parameters = golden["data"][entry["data"].get<size_t>()];
  parameters.update(entry["parameters"]);
  return parameters.dump();
}

}  // namespace convoy::experiments
