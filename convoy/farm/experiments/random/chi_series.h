// SPDX-License-Identifier: Apache-2.0
//
// The root of a chi-square variable as a function of one normal number, for shortcuts that draw a
// norm in place of many numbers. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::experiments {

// A Chebyshev series in normal / 6.6. The normal number is at most 6.6 in magnitude.
struct ChiSeries {
  std::vector<float> coefficients;

  double at(double normal) const;
};

// The series for `degrees` degrees of freedom, at least 1. It has the chi distribution, within 2e-6
// of the exact value.
ChiSeries chi_series(uint32_t degrees);

}  // namespace convoy::experiments
