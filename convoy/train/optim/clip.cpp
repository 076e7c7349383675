// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/optim/clip.h"

#include <cmath>

#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"

namespace convoy::optim {

double global_norm(const std::vector<at::Tensor>& gradients) {
  return std::sqrt(kernels::sum_of_squares(gradients).item<double>());
}

double clip_coefficient(double norm, double max_norm) {
  if (max_norm <= 0) return 1.0;
  const double coefficient = max_norm / (norm + 1e-6);
  return coefficient > 1.0 ? 1.0 : coefficient;
}

}  // namespace convoy::optim
