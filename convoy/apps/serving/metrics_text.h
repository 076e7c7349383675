// SPDX-License-Identifier: Apache-2.0
//
// Metrics in Prometheus' text format:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <string>
#include <vector>

namespace convoy::serving {

// Joins the samples of all texts. The samples of one metric follow its first HELP and TYPE lines,
// as the format demands. In each text the samples of a metric must follow its "# HELP" line.
std::string merged_metrics(const std::vector<std::string>& texts);

}  // namespace convoy::serving
