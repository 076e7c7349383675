// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/deferred_codes.h"

#include <ATen/ATen.h>

#include <utility>

#include "convoy/machine/device/refillable_tensor.h"

namespace convoy::models {

using kernels::BitsandbytesWeight;

DeferredCodes::DeferredCodes(std::shared_ptr<const CheckpointWeights> weights, at::ScalarType dtype,
                             at::Device device, nn::DeferredValues& values)
    : weights_(std::move(weights)), dtype_(dtype), device_(device), values_(values) {}

BitsandbytesWeight DeferredCodes::declare(const std::string& name, at::IntArrayRef shape) {
  const StoredCodes* const stored = weights_->find_stored_codes(name);
  BitsandbytesWeight weight = kernels::declare_bitsandbytes_weight(
      *weights_->coding_of(name), shape, stored == nullptr ? dtype_ : stored->dtype(), device_);
  if (stored != nullptr && weight.format.nested)
    weight.nested_table = stored->nested_table().to(device_);
  for (const BitsandbytesWeight::Part& part : weight.parts()) {
    device::release_memory(*part.tensor);
    if (stored != nullptr) {
      values_.set(*part.tensor, [weights = weights_, stored, suffix = part.suffix](
                                    int64_t begin, const at::Tensor& out) {
        stored->read_part(suffix, begin, out);
      });
      continue;
    }
    values_.set(*part.tensor, [weights = weights_, encoded = encoded_, dtype = dtype_, name,
                               suffix = part.suffix](int64_t begin, const at::Tensor& out) {
      if (encoded->name != name) *encoded = {name, weights->read_bitsandbytes(name, dtype)};
      for (const BitsandbytesWeight::Part& own : encoded->weight.parts())
        if (own.suffix == suffix) out.copy_(own.tensor->view({-1}).narrow(0, begin, out.numel()));
    });
  }
  return weight;
}

}  // namespace convoy::models
