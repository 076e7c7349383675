// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/deferred_values.h"

#include <ATen/ATen.h>

#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/model/nn/linear.h"

namespace convoy::nn {

void DeferredValues::set(const at::Tensor& parameter, Read read) {
  reads_[parameter.unsafeGetTensorImpl()] = std::move(read);
}

bool DeferredValues::contains(const at::Tensor& parameter) const {
  return reads_.contains(parameter.unsafeGetTensorImpl());
}

void DeferredValues::read(const at::Tensor& parameter, int64_t begin, const at::Tensor& out) const {
  const auto found = reads_.find(parameter.unsafeGetTensorImpl());
  CONVOY_INVARIANT(found != reads_.end(), "a parameter of {} elements has no deferred values",
                   parameter.numel());
  const at::NoGradGuard no_grad;
  found->second(begin, out);
}

ReadOnUse::ReadOnUse(const std::vector<Unit>& units, const DeferredValues& values)
    : values_(values), states_(units.size()) {
  for (size_t index = 0; index < units.size(); ++index) {
    for (const auto* parameters : {&units[index].frozen, &units[index].trained})
      for (const NamedTensor& parameter : *parameters)
        if (values.contains(parameter.value)) states_[index].deferred.push_back(parameter.value);
    if (!states_[index].deferred.empty()) states_[index].linears = units[index].linears;
  }
}

void ReadOnUse::acquire(size_t unit) {
  State& state = states_.at(unit);
  if (++state.uses > 1) return;
  for (const at::Tensor& parameter : state.deferred) {
    device::take_memory(parameter);
    values_.read(parameter, 0, parameter.detach().view({-1}));
  }
}

void ReadOnUse::release(size_t unit) {
  State& state = states_.at(unit);
  if (--state.uses > 0) return;
  for (Linear* const linear : state.linears) linear->release_packed();
  for (const at::Tensor& parameter : state.deferred) device::release_memory(parameter);
}

}  // namespace convoy::nn
