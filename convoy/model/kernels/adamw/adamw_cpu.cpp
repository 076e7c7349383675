// SPDX-License-Identifier: Apache-2.0
//
// One pass over each parameter, in order, so that equal inputs give equal bits.
#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

// Elements of a gradient in bf16 that are widened at a time.
constexpr int64_t kWidened = 1024;

template <class Element>
void update_one(const AdamWTensors& parameter, const AdamWFactors& factors, Element* rounded) {
  const auto& loops = simd_kernels<Element>();
  float* values = parameter.value.mutable_data_ptr<float>();
  float* means = parameter.exp_avg.mutable_data_ptr<float>();
  float* squares = parameter.exp_avg_sq.mutable_data_ptr<float>();
  const auto step = [&](const float* gradients, int64_t begin, int64_t count) {
    loops.adamw(factors, values + begin, gradients, means + begin, squares + begin,
                rounded == nullptr ? nullptr : rounded + begin, count);
  };
  for_rows(parameter.value.numel(), 1, [&](int64_t begin, int64_t end) {
    if (parameter.gradient.scalar_type() == at::kFloat)
      return step(parameter.gradient.const_data_ptr<float>() + begin, begin, end - begin);
    float widened[kWidened];
    for (; begin < end; begin += kWidened) {
      const int64_t count = std::min(kWidened, end - begin);
      simd_kernels<at::BFloat16>().to_float(
          parameter.gradient.const_data_ptr<at::BFloat16>() + begin, widened, count);
      step(widened, begin, count);
    }
  });
}

void update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  const AdamWFactors factors = factors_of(step);
  for (const AdamWTensors& parameter : parameters) {
    if (parameter.rounded.defined())
      update_one(parameter, factors, parameter.rounded.mutable_data_ptr<at::BFloat16>());
    else
      update_one<float>(parameter, factors, nullptr);
  }
}

}  // namespace

const AdamWOps kAdamWCpu = {update, update_narrow_on_cpu};

}  // namespace convoy::kernels
