// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"

namespace convoy::kernels {
namespace {

// Computes the small product first. The large product adds to it while it writes, which saves a
// pass over the result.
class PlainLinear : public PackedLinear {
 public:
  PlainLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O)
      : weight_OI_(weight_OI), bias_O_(bias_O.defined() ? std::optional(bias_O) : std::nullopt) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    if (!added.a_MK.defined()) return at::linear(x_TI, weight_OI_, bias_O_);
    at::Tensor y_TO =
        bias_O_ ? at::addmm(*bias_O_, added.a_MK, added.b_KN) : at::mm(added.a_MK, added.b_KN);
    return y_TO.addmm_(x_TI, weight_OI_.t());
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    at::Tensor sum = sum_TI;
    if (added.a_MK.defined())
      sum = sum.defined() ? sum.addmm_(added.a_MK, added.b_KN) : at::mm(added.a_MK, added.b_KN);
    return sum.defined() ? sum.addmm_(grad_TO, weight_OI_) : at::mm(grad_TO, weight_OI_);
  }

 private:
  at::Tensor weight_OI_;
  std::optional<at::Tensor> bias_O_;
};

// The weight is dequantised again for each product.
class PlainIntegerLinear : public PackedLinear {
 public:
  PlainIntegerLinear(const IntegerWeight& weight, const at::Tensor& bias_O)
      : weight_(weight), bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    if (weight_.format.activations == ActivationFormat::Int8) return rounded_forward(x_TI, added);
    return PlainLinear(values(), bias_O_).forward(x_TI, added);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return PlainLinear(values(), {}).input_gradient(grad_TO, added, sum_TI);
  }

 private:
  at::Tensor values() const { return weight_.values().to(weight_.dtype); }

  // Computes in fp32, because the dtype of x could not hold what the blocks of x represent.
  at::Tensor rounded_forward(const at::Tensor& x_TI, const ProductTerm& added) const {
    at::Tensor y_TO = at::mm(rounded_activations(x_TI), weight_.values().t());
    if (bias_O_.defined()) y_TO.add_(bias_O_);
    if (added.a_MK.defined()) y_TO.add_(at::mm(added.a_MK, added.b_KN));
    return y_TO.to(x_TI.scalar_type());
  }

  IntegerWeight weight_;
  at::Tensor bias_O_;
};

std::shared_ptr<PackedLinear> pack_integer(const IntegerWeight& weight, const at::Tensor& bias_O) {
  return std::make_shared<PlainIntegerLinear>(weight, bias_O);
}

// The weight is decoded as a whole for each product, into memory that the next product uses again.
class DecodedLinear : public PackedLinear {
 public:
  DecodedLinear(const BitsandbytesWeight& weight, const at::Tensor& bias_O)
      : weight_(weight), bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    return PlainLinear(values(x_TI), bias_O_).forward(x_TI, added);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return PlainLinear(values(grad_TO), {}).input_gradient(grad_TO, added, sum_TI);
  }

 private:
  at::Tensor values(const at::Tensor& beside) const {
    return decode_weight(weight_, beside.scalar_type());
  }

  BitsandbytesWeight weight_;
  at::Tensor bias_O_;
};

std::shared_ptr<PackedLinear> pack_bitsandbytes(const BitsandbytesWeight& weight,
                                                const at::Tensor& bias_O) {
  return std::make_shared<DecodedLinear>(weight, bias_O);
}

std::shared_ptr<PackedLinear> pack_linear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  return std::make_shared<PlainLinear>(weight_OI, bias_O);
}

}  // namespace

const FrozenLinearOps kFrozenLinearAten = {pack_linear, pack_integer, pack_bitsandbytes};

}  // namespace convoy::kernels
