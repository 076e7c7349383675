// SPDX-License-Identifier: Apache-2.0
//
// One loop over tokens and heads: ATen's functions compute the last elements of a tensor in another
// way than the elements before, so a token's bits would depend on its place in the batch.
#include <cmath>

#include "convoy/model/kernels/delta_gates/delta_gates_ops.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

constexpr float kLinearFrom = 20.0F;

float softplus(float x) { return x > kLinearFrom ? x : std::log1p(std::exp(x)); }

DeltaGates run_forward(const at::Tensor& a_TH, const at::Tensor& b_TH, const at::Tensor& a_log_H,
                       const at::Tensor& dt_bias_H) {
  const int64_t heads = a_TH.size(1);
  const auto options = a_TH.options().dtype(at::kFloat);
  DeltaGates gates{at::empty(a_TH.sizes(), options), at::empty(a_TH.sizes(), options)};
  with_element(a_TH, "delta_gates", [&](auto element) {
    using Element = decltype(element);
    const auto* a = a_TH.const_data_ptr<Element>();
    const auto* b = b_TH.const_data_ptr<Element>();
    const auto* a_log = a_log_H.const_data_ptr<Element>();
    const auto* dt_bias = dt_bias_H.const_data_ptr<Element>();
    auto* log_decay = gates.log_decay_TH.mutable_data_ptr<float>();
    auto* beta = gates.beta_TH.mutable_data_ptr<float>();
    for_rows(a_TH.size(0), heads, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * heads; at < end * heads; ++at) {
        const int64_t head = at % heads;
        const float rate = std::exp(static_cast<float>(a_log[head]));
        const float step = static_cast<float>(a[at]) + static_cast<float>(dt_bias[head]);
        const float opened = 1.0F / (1.0F + std::exp(-static_cast<float>(b[at])));
        log_decay[at] = -rate * softplus(step);
        beta[at] = static_cast<float>(static_cast<Element>(opened));
      }
    });
  });
  return gates;
}

}  // namespace

const DeltaGatesOps kDeltaGatesCpu = {run_forward};

}  // namespace convoy::kernels
