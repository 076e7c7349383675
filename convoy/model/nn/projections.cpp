// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/projections.h"

#include <algorithm>
#include <utility>

namespace convoy::nn {
namespace {

std::vector<const Linear*> pointers_to(const std::vector<Linear>& maps) {
  std::vector<const Linear*> pointers;
  for (const Linear& map : maps) pointers.push_back(&map);
  return pointers;
}

std::vector<Linear*> pointers_to(std::vector<Linear>& maps) {
  std::vector<Linear*> pointers;
  for (Linear& map : maps) pointers.push_back(&map);
  return pointers;
}

}  // namespace

Projections::Projections(std::vector<Linear> maps, std::vector<int64_t> widths)
    : maps_(std::move(maps)), widths_(std::move(widths)) {}

std::vector<at::Tensor> Projections::forward(const at::Tensor& x_TI, DrawKey draw_key) const {
  if (maps_.size() > 1) return joined_.forward(pointers_to(maps_), x_TI, draw_key);
  return maps_.front().forward(x_TI, draw_key).split_with_sizes(widths_, 1);
}

void Projections::join() {
  if (maps_.size() > 1) joined_.join(pointers_to(maps_));
}

void Projections::quantize(const kernels::IntegerFormat& format) {
  if (maps_.size() > 1)
    joined_.quantize(pointers_to(maps_), format);
  else
    maps_.front().quantize(format);
}

bool Projections::trains() const {
  return std::any_of(maps_.begin(), maps_.end(), [](const Linear& map) { return map.trains(); });
}

void Projections::visit(const std::function<void(Linear&)>& visitor) {
  for (Linear& map : maps_) visitor(map);
}

}  // namespace convoy::nn
