// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/metrics_text.h"

#include <map>
#include <sstream>

namespace convoy::serving {
namespace {

struct MetricFamily {
  std::string head;  // HELP and TYPE
  std::string samples;
};

}  // namespace

std::string merged_metrics(const std::vector<std::string>& texts) {
  std::vector<std::string> order;  // metrics in the order of their HELP lines
  std::map<std::string, MetricFamily> families;
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    MetricFamily* family = nullptr;
    bool is_first = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# HELP ")) {
        is_first = !families.contains(line);
        if (is_first) order.push_back(line);
        family = &families[line];
      }
      if (family == nullptr || line.empty()) continue;
      if (!line.starts_with('#'))
        family->samples += line + "\n";
      else if (is_first)
        family->head += line + "\n";
    }
  }
  std::string merged;
  for (const std::string& help : order) merged += families[help].head + families[help].samples;
  return merged;
}

}  // namespace convoy::serving
