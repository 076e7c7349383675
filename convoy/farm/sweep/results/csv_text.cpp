// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/csv_text.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::sweep {

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace convoy::sweep
