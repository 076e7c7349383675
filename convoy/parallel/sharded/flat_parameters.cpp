// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/sharded/flat_parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace convoy::parallel {
namespace {

// Elements. Of any type whole cache lines: kernels load vectors from the beginning of a parameter.
constexpr int64_t kAlignment = 32;

int64_t aligned(int64_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

FlatParameters::FlatParameters(std::vector<nn::NamedTensor> parameters, int num_pieces)
    : num_pieces_(num_pieces) {
  int64_t end = 0;
  for (nn::NamedTensor& parameter : parameters) {
    const int64_t numel = parameter.value.numel();
    std::vector<int64_t> shape = parameter.value.sizes().vec();
    places_.push_back({std::move(parameter), std::move(shape), end, numel});
    end += aligned(numel);
  }
  piece_numel_ = aligned((end + num_pieces - 1) / num_pieces);
  const at::NoGradGuard no_grad;
  whole_ = device::RefillableTensor(numel(), places_.at(0).parameter.value.options());
  whole_.flat().zero_();
  for (FlatPlace& place : places_) {
    at::Tensor& value = place.parameter.value;
    const at::Tensor view = whole_.view(place.begin, place.shape);
    view.copy_(value);
    value.set_data(view);
  }
}

std::vector<PieceOfParameter> FlatParameters::parts_of_piece(int piece) const {
  const int64_t piece_begin = piece * piece_numel_;
  std::vector<PieceOfParameter> parts;
  for (size_t index = 0; index < places_.size(); ++index) {
    const FlatPlace& place = places_[index];
    const int64_t begin = std::max(place.begin, piece_begin);
    const int64_t end = std::min(place.begin + place.numel, piece_begin + piece_numel_);
    if (begin < end)
      parts.push_back({.place = index,
                       .begin_in_parameter = begin - place.begin,
                       .begin_in_piece = begin - piece_begin,
                       .numel = end - begin});
  }
  return parts;
}

}  // namespace convoy::parallel
