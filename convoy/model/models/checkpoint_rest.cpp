// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/checkpoint_rest.h"

#include <algorithm>
#include <set>

#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/registry.h"

namespace convoy::models {
namespace {

constexpr int64_t kCopiedBytes = int64_t{1} << 22;

void copy_in_pieces(const io::TensorView& view, const io::ByteSink& sink) {
  const int64_t most = std::max<int64_t>(1, kCopiedBytes / io::dtype_bytes(view.dtype));
  std::vector<std::byte> bytes;
  for (int64_t begin = 0; begin < view.num_elements(); begin += most) {
    const io::TensorView piece = view.elements(begin, std::min(most, view.num_elements() - begin));
    bytes.resize(piece.bytes.size());
    io::copy_bytes(piece, bytes);
    sink(bytes);
  }
}

}  // namespace

bool holds_more_than_text(const io::ModelFolder& source) {
  return families::family_of(source).layout == families::TextModel::Nested;
}

CheckpointRest::CheckpointRest(const io::ModelFolder& source, Extent extent) {
  if (extent == Extent::Whole && holds_more_than_text(source))
    weights_ = std::make_shared<const CheckpointWeights>(open_weights(source));
}

std::string CheckpointRest::saved_name(const std::string& parameter) const {
  return weights_ ? weights_->view(parameter).name : parameter;
}

std::vector<io::TensorSource> CheckpointRest::sources() const {
  std::vector<io::TensorSource> sources;
  if (!weights_) return sources;
  for (const io::TensorView* const view : weights_->others())
    sources.push_back({.name = view->name,
                       .dtype = view->dtype,
                       .shape = view->shape,
                       .produce = [weights = weights_, view](const io::ByteSink& sink) {
                         copy_in_pieces(*view, sink);
                       }});
  return sources;
}

std::optional<at::ScalarType> one_dtype(const std::vector<io::TensorSource>& tensors) {
  std::set<io::Dtype> types;
  for (const io::TensorSource& tensor : tensors)
    if (device::is_float(tensor.dtype)) types.insert(tensor.dtype);
  if (types.size() != 1) return std::nullopt;
  return device::tensor_dtype(*types.begin());
}

}  // namespace convoy::models
