// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/linear.h"

#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::nn {

std::vector<at::Tensor> LinearAdapter::forward_together(const std::vector<const Linear*>&,
                                                        const at::Tensor&, DrawKey) const {
  return {};
}

void LinearAdapter::add_to(const at::Tensor&, const at::Tensor&) const {
  throw StateError("an adapter that is no sum cannot be added to a map's output");
}

Linear::Linear(std::string name, at::Tensor weight_OI, at::Tensor bias_O)
    : name_(std::move(name)), weight_OI_(std::move(weight_OI)), bias_O_(std::move(bias_O)) {
  CONVOY_INVARIANT(weight_OI_.dim() == 2, "the weight of {} has {} dimensions", name_,
                   weight_OI_.dim());
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;

at::Tensor Linear::forward(const at::Tensor& x, DrawKey draw_key) const {
  return adapter_ ? adapter_->forward(*this, x, draw_key) : base_forward(x);
}

at::Tensor Linear::base_forward(const at::Tensor& x) const {
  if (weight_OI_.requires_grad() || (bias_O_.defined() && bias_O_.requires_grad())) {
    return kernels::trained_linear(x, weight_OI_, bias_O_);
  }
  return frozen().forward(x);
}

const kernels::FrozenLinear& Linear::frozen() const {
  CONVOY_INVARIANT(!weight_OI_.requires_grad(), "the weight of {} trains", name_);
  CONVOY_INVARIANT(packed_ || !is_integer_, "{} multiplies with the maps that it is joined with",
                   name_);
  if (!packed_)
    packed_ = coded_ ? std::make_unique<kernels::FrozenLinear>(*coded_, bias_O_)
                     : std::make_unique<kernels::FrozenLinear>(weight_OI_, bias_O_);
  return *packed_;
}

void Linear::set_adapter(std::shared_ptr<const LinearAdapter> adapter,
                         std::vector<NamedTensor> leaves) {
  adapter_ = std::move(adapter);
  adapter_leaves_ = std::move(leaves);
}

void Linear::weight_changed() {
  CONVOY_INVARIANT(!is_integer_, "the weight of {} is gone: it is quantised", name_);
  packed_.reset();
}

void Linear::quantize(const kernels::IntegerFormat& format) {
  CONVOY_INVARIANT(!weight_OI_.requires_grad(), "the weight of {} trains", name_);
  packed_ =
      std::make_unique<kernels::FrozenLinear>(kernels::quantize_weight(values(), format), bias_O_);
  weight_OI_ = at::empty(weight_OI_.sizes(), weight_OI_.options().device(at::kMeta));
  coded_.reset();
  is_integer_ = true;
}

void Linear::leave_values_to_joined() {
  weight_OI_ = at::empty(weight_OI_.sizes(), weight_OI_.options().device(at::kMeta));
  coded_.reset();
  packed_.reset();
  is_integer_ = true;
}

void Linear::set_bitsandbytes(kernels::BitsandbytesWeight weight) {
  CONVOY_INVARIANT(!weight_OI_.requires_grad() && weight_OI_.sizes() == weight.shape,
                   "the weight of {} trains, or has another shape", name_);
  coded_ = std::make_unique<kernels::BitsandbytesWeight>(std::move(weight));
  weight_OI_ = at::empty(weight_OI_.sizes(), weight_OI_.options().device(at::kMeta));
  packed_.reset();
}

void Linear::decode() {
  weight_OI_ = values();
  coded_.reset();
  packed_.reset();
}

at::Tensor Linear::values() const {
  CONVOY_INVARIANT(!is_integer_, "the weight of {} is gone: it is quantised", name_);
  return coded_ ? kernels::decode_weight(*coded_, weight_OI_.scalar_type()) : weight_OI_;
}

std::vector<NamedTensor> Linear::parts() const {
  std::vector<NamedTensor> list;
  if (!coded_) list.push_back({name_ + ".weight", weight_OI_});
  if (coded_)
    for (const kernels::BitsandbytesWeight::Part& part : coded_->parts())
      list.push_back({name_ + ".weight" + part.suffix, *part.tensor});
  if (bias_O_.defined()) list.push_back({name_ + ".bias", bias_O_});
  return list;
}

void Linear::release_packed() {
  if (packed_) packed_->release_packed();
}

bool Linear::trains() const {
  return weight_OI_.requires_grad() || (bias_O_.defined() && bias_O_.requires_grad()) ||
         (adapter_ && adapter_->trains());
}

}  // namespace convoy::nn
