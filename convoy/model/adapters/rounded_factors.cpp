// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/rounded_factors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace convoy::adapters {
namespace {

std::array<int64_t, 2> versions_of(const RoundedFactors::Pair& leaves) {
  return {leaves.a_RI._version(), leaves.b_OR._version()};
}

// Are all `views` views of `memory`, and is `memory` held only by them and the caller?
bool have_alone(const at::Tensor& memory, const std::vector<at::Tensor*>& views) {
  return std::all_of(views.begin(), views.end(),
                     [&](const at::Tensor* view) {
                       return view->defined() && view->is_alias_of(memory);
                     }) &&
         memory.storage().use_count() == views.size() + 1;
}

}  // namespace

size_t RoundedFactors::add(at::Tensor a_RI, at::Tensor b_OR) {
  slots_.push_back({.leaves = {std::move(a_RI), std::move(b_OR)}});
  return slots_.size() - 1;
}

bool RoundedFactors::Slot::is_current(at::ScalarType dtype) const {
  return rounded.a_RI.defined() && rounded.a_RI.scalar_type() == dtype &&
         versions == versions_of(leaves);
}

const RoundedFactors::Pair& RoundedFactors::of(size_t number, at::ScalarType dtype) {
  if (!slots_[number].is_current(dtype)) round_changed(dtype);
  return slots_[number].rounded;
}

// Rounds into new memory where unfinished graphs still hold the old values.
void RoundedFactors::round_changed(at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor*> rounded;
  for (at::Tensor Pair::*const factor : {&Pair::a_RI, &Pair::b_OR})
    for (Slot& slot : slots_) {
      if (slot.is_current(dtype)) continue;
      leaves.push_back(slot.leaves.*factor);
      rounded.push_back(&(slot.rounded.*factor));
    }
  const bool reuses =
      memory_.defined() && memory_.scalar_type() == dtype && have_alone(memory_, rounded);
  if (!reuses) place_anew(rounded, leaves, dtype);
  std::vector<at::Tensor> places;
  for (const at::Tensor* place : rounded) places.push_back(*place);
  at::_foreach_copy_(places, leaves);
  for (Slot& slot : slots_) slot.versions = versions_of(slot.leaves);
}

void RoundedFactors::place_anew(const std::vector<at::Tensor*>& rounded,
                                const std::vector<at::Tensor>& like, at::ScalarType dtype) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : like) elements += tensor.numel();
  memory_ = at::empty({elements}, like.front().options().dtype(dtype));
  int64_t begin = 0;
  for (size_t index = 0; index < rounded.size(); ++index) {
    const int64_t numel = like[index].numel();
    *rounded[index] = memory_.narrow(0, begin, numel).view(like[index].sizes());
    begin += numel;
  }
}

at::Tensor stacked_rows(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts.front();
  int64_t rows = 0;
  bool is_one = true;
  for (const at::Tensor& part : parts) {
    is_one = is_one && part.is_alias_of(first) && part.is_contiguous() &&
             part.storage_offset() == first.storage_offset() + rows * first.size(1);
    rows += part.size(0);
  }
  return is_one ? first.as_strided({rows, first.size(1)}, {first.size(1), 1}) : at::cat(parts);
}

}  // namespace convoy::adapters
