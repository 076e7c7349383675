// SPDX-License-Identifier: Apache-2.0
#include "convoy/optim/clip.h"

#include "convoy/base/error.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::optim {
namespace {

// Elements summed by one thread at a time: fixed, so the norm does not depend on the number of
// threads.
constexpr int64_t kPart = 1 << 16;

double sum_of_squares(const at::Tensor& gradient) {
  CONVOY_INVARIANT(gradient.scalar_type() == at::kFloat && gradient.is_contiguous(),
                   "global_norm wants contiguous fp32 gradients");
  const float* values = gradient.const_data_ptr<float>();
  const int64_t total = gradient.numel();
  std::vector<double> sums((total + kPart - 1) / kPart);
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      sums[part] = kernels::simd_kernels<float>().sum_of_squares(
          values + part * kPart, std::min(kPart, total - part * kPart));
    }
  });
  double sum = 0;
  for (double part : sums) sum += part;
  return sum;
}

}  // namespace

double global_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients) sum += sum_of_squares(gradient);
  return std::sqrt(sum);
}

double clip_coefficient(double norm, double max_norm) {
  if (max_norm <= 0) return 1.0;
  const double coefficient = max_norm / (norm + 1e-6);
  return coefficient > 1.0 ? 1.0 : coefficient;
}

}  // namespace convoy::optim
