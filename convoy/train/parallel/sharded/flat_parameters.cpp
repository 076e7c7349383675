// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/flat_parameters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::parallel {
namespace {

// Parameters and pieces begin at multiples of this many elements. It is a multiple of the blocks
// that share a scale in 8-bit optimizer states and in quantised weights, so that no block lies on
// two ranks. For every type it is a multiple of whole cache lines, because kernels load vectors
// from the beginning of a parameter.
constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

FlatParameters::FlatParameters(std::vector<nn::NamedTensor> parameters, int num_pieces,
                               const nn::DeferredValues* values)
    : num_pieces_(num_pieces), deferred_(values) {
  int64_t end = 0;
  for (nn::NamedTensor& parameter : parameters) {
    const int64_t numel = parameter.value.numel();
    std::vector<int64_t> shape = parameter.value.sizes().vec();
    ranges_.push_back({std::move(parameter), std::move(shape), end, numel});
    end += aligned(numel);
  }
  piece_numel_ = aligned((end + num_pieces - 1) / num_pieces);
  const at::NoGradGuard no_grad;
  whole_ = device::RefillableTensor(numel(), ranges_.at(0).parameter.value.options());
  for (FlatRange& range : ranges_) {
    at::Tensor& value = range.parameter.value;
    const bool deferred = deferred_ != nullptr && deferred_->contains(value);
    values_.push_back(deferred ? at::Tensor() : value.detach().reshape({-1}));
    value.set_data(whole_.view(range.begin, range.shape));
  }
  whole_.release_memory();
}

void FlatParameters::read(size_t range, int64_t begin, const at::Tensor& out) const {
  if (values_[range].defined())
    out.copy_(values_[range].narrow(0, begin, out.numel()));
  else
    deferred_->read(ranges_[range].parameter.value, begin, out);
}

void FlatParameters::fill_whole() {
  const at::NoGradGuard no_grad;
  whole_.take_memory();
  whole_.flat().zero_();
  for (size_t range = 0; range < ranges_.size(); ++range)
    read(range, 0, whole_.flat().narrow(0, ranges_[range].begin, ranges_[range].numel));
}

at::Tensor FlatParameters::filled_piece(int piece) const {
  const at::NoGradGuard no_grad;
  const at::Tensor values = at::zeros({piece_numel_}, whole_.flat().options());
  for (const PieceOfParameter& part : parts_of_piece(piece))
    read(part.range, part.begin_in_parameter, values.narrow(0, part.begin_in_piece, part.numel));
  return values;
}

void FlatParameters::take_memory() {
  whole_.take_memory();
  lay_over(/*memory=*/true);
}

void FlatParameters::release_memory() {
  lay_over(/*memory=*/false);
  whole_.release_memory();
}

void FlatParameters::withhold(const std::function<std::string(const std::string&)>& error) {
  for (const FlatRange& range : ranges_) {
    withheld_.push_back(device::withheld_storage(whole_.flat(), error(range.parameter.name)));
    range.parameter.value.unsafeGetTensorImpl()->set_storage_keep_dtype(withheld_.back());
  }
}

void FlatParameters::lay_over(bool memory) {
  for (size_t index = 0; index < withheld_.size(); ++index) {
    const at::Storage& whole = whole_.flat().storage();
    const FlatRange& range = ranges_[index];
    if (!range.parameter.value.storage().is_alias_of(memory ? withheld_[index] : whole))
      throw ConfigError(
          fmt::format("{} was given other memory since it was sharded (torch::load or to() of the "
                      "module)",
                      range.parameter.name),
          {.hint = "load or move the module before it is sharded, or load a CheckpointFolder"});
    range.parameter.value.unsafeGetTensorImpl()->set_storage_keep_dtype(memory ? whole
                                                                               : withheld_[index]);
  }
}

void FlatParameters::forget_values() {
  values_.clear();
  deferred_ = nullptr;
}

std::vector<PieceOfParameter> FlatParameters::parts_of_piece(int piece) const {
  const int64_t piece_begin = piece * piece_numel_;
  std::vector<PieceOfParameter> parts;
  for (size_t index = 0; index < ranges_.size(); ++index) {
    const FlatRange& range = ranges_[index];
    const int64_t begin = std::max(range.begin, piece_begin);
    const int64_t end = std::min(range.begin + range.numel, piece_begin + piece_numel_);
    if (begin < end)
      parts.push_back({.range = index,
                       .begin_in_parameter = begin - range.begin,
                       .begin_in_piece = begin - piece_begin,
                       .numel = end - begin});
  }
  return parts;
}

}  // namespace convoy::parallel
