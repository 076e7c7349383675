// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pass_at_k.h"

#include <string>

namespace convoy::process {

double pass_at_k(int64_t samples, int64_t right, int64_t k) {
  // The quotient of the binomial coefficients as a product, which has no large factors.
  double none_right = 1;
  for (int64_t among = samples - right + 1; among <= samples; ++among)
    none_right *= 1 - static_cast<double>(k) / static_cast<double>(among);
  return k > samples - right ? 1 : 1 - none_right;
}

nlohmann::ordered_json pass_at_powers(int64_t samples, int64_t right) {
  if (samples == 0) return nullptr;
  nlohmann::ordered_json estimates;
  for (int64_t k = 1; k < samples; k *= 2)
    estimates[std::to_string(k)] = pass_at_k(samples, right, k);
  estimates[std::to_string(samples)] = pass_at_k(samples, right, samples);
  return estimates;
}

}  // namespace convoy::process
