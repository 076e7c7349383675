// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/fsdp_unit.h"

#include "convoy/library/internal/told_in_backward.h"
#include "convoy/model/nn/unit.h"

namespace convoy::detail {

void UnitCore::attach(nn::Residency* residency, size_t unit) {
  residency_ = residency;
  unit_ = unit;
}

UnitPass::UnitPass(const UnitCore& unit) : residency_(*unit.residency()), unit_(unit.unit()) {
  residency_.acquire(unit_);
}

UnitPass::~UnitPass() { residency_.release(unit_); }

void UnitPass::enter(const std::vector<at::Tensor*>& inputs) const {
  tell_in_backward(inputs,
                   [residency = &residency_, unit = unit_](bool) { residency->release(unit); });
}

void UnitPass::leave(const std::vector<at::Tensor*>& outputs) const {
  tell_in_backward(outputs,
                   [residency = &residency_, unit = unit_](bool) { residency->acquire(unit); });
}

}  // namespace convoy::detail
