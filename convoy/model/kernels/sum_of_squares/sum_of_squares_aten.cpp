// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_ops.h"

namespace convoy::kernels {
namespace {

// Takes a few launches for any number of tensors.
at::Tensor sum(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> wide;
  for (const at::Tensor& tensor : tensors) wide.push_back(tensor.to(at::kFloat));
  return at::stack(at::_foreach_norm(wide)).to(at::kDouble).square().sum();
}

}  // namespace

const SumOfSquaresOps kSumOfSquaresAten = {sum};

}  // namespace convoy::kernels
