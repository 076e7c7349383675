// SPDX-License-Identifier: Apache-2.0
//
// Reads and prints the figures that lm-evaluation-harness has measured.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "convoy/apps/front/harness/harness_folder.h"

namespace convoy::apps {

// The files results_*.json below `folder`.
std::set<std::filesystem::path> results_files(const std::filesystem::path& folder);

// Reads the newest results_*.json below `folder` that is not among `former`. Returns {"harness":
// VERSION, "tasks": {TASK: {"METRIC[,FILTER]": VALUE, "METRIC_stderr[,FILTER]": VALUE, "n": ROWS,
// "num_fewshot": N, "version": V}}}; the filter `none` is left out, and so is a standard error that
// the harness did not compute. Throws DataError when there is no such file, or when it has another
// form.
nlohmann::ordered_json read_harness_results(const HarnessFolder& folder,
                                            const std::set<std::filesystem::path>& former);

// A line for each metric: task, metric, value, standard error, rows and solved examples.
std::string harness_table(const nlohmann::ordered_json& results);

// A line for each metric that both have: task, metric, the value before and after, standard error
// of the second, and rows.
std::string harness_comparison(const nlohmann::ordered_json& before,
                               const nlohmann::ordered_json& after);

}  // namespace convoy::apps
