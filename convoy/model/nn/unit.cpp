// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/unit.h"

#include <utility>

#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::nn {
namespace {

// Returns the same values; `reached` is called when backward arrives at them.
at::Tensor told_in_backward(const at::Tensor& values, const char* op,
                            std::function<void()> reached) {
  if (!kernels::records_gradient({values})) return values;
  const at::NoGradGuard no_grad;
  return kernels::with_backward(
      values, {.op = op,
               .inputs = {values},
               .saved = {},
               .gradients = [reached = std::move(reached)](
                                const at::Tensor& grad, const std::vector<at::Tensor>&,
                                const std::vector<bool>&) -> std::vector<at::Tensor> {
                 reached();
                 return {grad};
               }});
}

}  // namespace

UnitUse::UnitUse(Residency* residency, size_t unit) : residency_(residency), unit_(unit) {
  if (residency_ != nullptr) residency_->acquire(unit_);
}

UnitUse::~UnitUse() {
  if (residency_ != nullptr) residency_->release(unit_);
}

at::Tensor UnitUse::enter(const at::Tensor& input) const {
  if (residency_ == nullptr) return input;
  return told_in_backward(input, "unit_input",
                          [residency = residency_, unit = unit_] { residency->release(unit); });
}

at::Tensor UnitUse::leave(const at::Tensor& output) const {
  if (residency_ == nullptr) return output;
  return told_in_backward(output, "unit_output",
                          [residency = residency_, unit = unit_] { residency->acquire(unit); });
}

}  // namespace convoy::nn
