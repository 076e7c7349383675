// SPDX-License-Identifier: Apache-2.0
//
// Compares an op with its reference in double: outputs and gradients, in fp32 and bf16, within a
// tolerance derived from the dtype and the length of the longest sum.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <vector>

namespace convoy::testing {

using Tensors = std::vector<at::Tensor>;
using Op = std::function<at::Tensor(const Tensors&)>;

// The tolerance is relative to the largest magnitude of the expected tensor. Rounding errors of a
// sum of n terms grow like sqrt(n); the constant covers the few roundings inside an op. Ops on bf16
// sum in fp32, so only their roundings to bf16 count.
inline double tolerance(at::ScalarType dtype, int64_t reduction_length) {
  if (dtype == at::kBFloat16) return 3.0 * std::ldexp(1.0, -8);
  return 8.0 * std::ldexp(1.0, -23) * std::sqrt(static_cast<double>(reduction_length) + 16.0);
}

inline double relative_error(const at::Tensor& found, const at::Tensor& wanted) {
  if (wanted.numel() == 0) return found.numel() == 0 ? 0.0 : 1.0;
  const at::Tensor wide = wanted.to(at::kDouble);
  const double largest = wide.abs().max().item<double>();
  const double difference = (found.to(at::kDouble) - wide).abs().max().item<double>();
  return std::isfinite(difference) ? difference / std::max(largest, 1e-12) : INFINITY;
}

// Returns deterministic values in [-2, 2].
inline at::Tensor sample(at::IntArrayRef sizes, at::ScalarType dtype, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions().dtype(at::kDouble)).clamp(-2, 2).to(dtype);
}

struct OpErrors {
  double output = 0;
  std::vector<double> gradients;  // by input; 0 for inputs without a gradient

  double worst() const {
    double worst = output;
    for (double error : gradients) worst = std::max(worst, error);
    return worst;
  }
};

// Runs the op and the reference on the same numbers, with the same random cotangent.
inline OpErrors compare(const Op& op, const Op& reference, const Tensors& inputs) {
  Tensors own;
  Tensors wide;
  for (const at::Tensor& input : inputs) {
    own.push_back(input.detach().clone().requires_grad_(true));
    wide.push_back(input.detach().to(at::kDouble).requires_grad_(true));
  }
  const at::Tensor found = op(own);
  const at::Tensor wanted = reference(wide);
  OpErrors errors{.output = relative_error(found.detach(), wanted.detach()), .gradients = {}};
  const at::Tensor cotangent = sample(found.sizes(), found.scalar_type(), 99);
  const auto found_gradients = torch::autograd::grad({found}, own, {cotangent});
  const auto wanted_gradients = torch::autograd::grad({wanted}, wide, {cotangent.to(at::kDouble)});
  for (size_t index = 0; index < own.size(); ++index) {
    errors.gradients.push_back(relative_error(found_gradients[index], wanted_gradients[index]));
  }
  return errors;
}

}  // namespace convoy::testing
