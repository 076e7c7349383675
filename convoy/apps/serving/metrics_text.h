// SPDX-License-Identifier: Apache-2.0
//
// Metrics in Prometheus' text format:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <string>
#include <vector>

namespace convoy::serving {

// Joins the samples of all texts. Samples of one metric stand together under its first HELP and
// TYPE, as the format demands. A metric's samples follow its "# HELP" line.
std::string merged_metrics(const std::vector<std::string>& texts);

}  // namespace convoy::serving
