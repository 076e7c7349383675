// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/median_step.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/farm/sweep/command/program_answer.h"
#include "convoy/farm/sweep/command/result_lines.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

bool MedianStep::wants(const OutputLine& line) {
  if (std::isfinite(value_)) return true;
  const auto object = key_in_line(line, key_).object;
  const nlohmann::json* const step = object ? find_key(*object, "step") : nullptr;
  const nlohmann::json* const value = object ? find_key(*object, key_) : nullptr;
  if (step == nullptr || value == nullptr || !step->is_number() || !value->is_number() ||
      step->get<double>() < static_cast<double>(rule_.step))
    return true;
  value_ = value->get<double>();
  const std::vector<double> others = others_ ? others_() : std::vector<double>();
  if (others.size() < kLeastOthers) return true;
  const double median = quantile(others, 0.5);
  const bool worse = rule_.greatest_is_best ? value_ < median : value_ > median;
  if (worse) pruned_ = Pruned{.step = step->get<int64_t>(), .value = value_, .median = median};
  return !worse;
}

}  // namespace convoy::sweep
