// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/replicated_buffers.h"

#include <algorithm>

#include "convoy/train/parallel/same_parameters.h"

namespace convoy::parallel {

void ReplicatedBuffers::add(const std::vector<nn::Unit>& units) {
  std::vector<nn::NamedTensor> all;
  for (const nn::Unit& unit : units)
    all.insert(all.end(), unit.buffers.begin(), unit.buffers.end());
  check_same_parameters(group_, all);
  for (const nn::NamedTensor& buffer : all) {
    const auto same = std::find_if(flats_.begin(), flats_.end(), [&](const Flat& flat) {
      return flat.together.scalar_type() == buffer.value.scalar_type();
    });
    Flat& flat = same != flats_.end() ? *same : flats_.emplace_back();
    if (!flat.together.defined()) flat.together = at::empty({0}, buffer.value.options());
    flat.buffers.push_back(buffer.value);
    flat.together =
        at::empty({flat.together.numel() + buffer.value.numel()}, buffer.value.options());
  }
  take_those_of_rank_zero();
}

void ReplicatedBuffers::take_those_of_rank_zero() {
  if (group_.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (Flat& flat : flats_) {
    std::vector<at::Tensor> places;
    int64_t offset = 0;
    for (const at::Tensor& buffer : flat.buffers) {
      places.push_back(flat.together.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
      offset += buffer.numel();
    }
    if (group_.rank() == 0)
      for (size_t index = 0; index < places.size(); ++index)
        places[index].copy_(flat.buffers[index]);
    group_.broadcast(flat.together, 0);
    if (group_.rank() != 0)
      for (size_t index = 0; index < places.size(); ++index)
        flat.buffers[index].copy_(places[index]);
  }
}

}  // namespace convoy::parallel
