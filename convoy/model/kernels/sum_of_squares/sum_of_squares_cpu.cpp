// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/simd_kernels.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_ops.h"

namespace convoy::kernels {
namespace {

// Elements summed by one thread at a time: fixed, so the sum does not depend on the number of
// threads.
constexpr int64_t kPart = 1 << 16;

template <class Element>
double sum_of(const at::Tensor& tensor) {
  const Element* values = tensor.const_data_ptr<Element>();
  const int64_t total = tensor.numel();
  std::vector<double> sums((total + kPart - 1) / kPart);
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      sums[part] = simd_kernels<Element>().sum_of_squares(values + part * kPart,
                                                          std::min(kPart, total - part * kPart));
    }
  });
  double sum = 0;
  for (double part : sums) sum += part;
  return sum;
}

at::Tensor sum(const std::vector<at::Tensor>& tensors) {
  double all = 0;
  for (const at::Tensor& tensor : tensors)
    all +=
        tensor.scalar_type() == at::kFloat ? sum_of<float>(tensor) : sum_of<at::BFloat16>(tensor);
  return at::scalar_tensor(all, at::kDouble);
}

}  // namespace

const SumOfSquaresOps kSumOfSquaresCpu = {sum};

}  // namespace convoy::kernels
