// SPDX-License-Identifier: Apache-2.0
//
// The constants, numbers and sums of a descent's step that CPUs and GPUs share. Compiled without
// contraction of products and sums.
#pragma once

#include <stdint.h>

namespace convoy::experiments {

inline constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kAdamEpsilon = 1e-8;
inline constexpr double kAdaptiveBeta = 0.8, kAdaptiveEpsilon = 1e-6;

// The numbers of an epoch that depend only on the number of the epoch.
struct SsmEpoch {
  double lr = 0;                // learning rate of the schedule
  double norm_correction = 1;   // corrects the mean norm of the gradient
  double first_correction = 1;  // corrects Adam's moments
  double root_correction = 1;
};

// The sum of eight partial sums, added in a fixed order.
template <class Parts>
inline double total_of_parts(const Parts& parts) {
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
         ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

// The part of d loss / d a that one row of the training loss contributes: the factor of a^power.
inline double row_slope(const double* row, const double* s, double divisor, uint32_t power,
                        uint32_t num_powers) {
  double dot = 0;
  for (uint32_t at = 0; at < num_powers; ++at) dot += row[at] * s[at];
  return 2 / divisor * dot * row[power] * (power + 1);
}

// The learning rate of the schedule "adaptive". Updates the mean norm of the gradient.
inline double adaptive_lr(const SsmEpoch& epoch, double norm, double& mean_norm) {
  mean_norm = kAdaptiveBeta * mean_norm + (1 - kAdaptiveBeta) * norm;
  const double unbiased = mean_norm / epoch.norm_correction;
  return epoch.lr / (__builtin_sqrt(unbiased) + kAdaptiveEpsilon);
}

}  // namespace convoy::experiments
