// SPDX-License-Identifier: Apache-2.0
//
// Products over packed panels. For few rows, as in generation, packing would cost as much as the
// product, so the packed weight is kept. For many rows the weight is packed block by block while it
// is read, so that training holds a weight only once.
#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"
#include "convoy/model/kernels/integer_weight/integer_panels.h"
#include "convoy/model/kernels/matrix_product/panel_product.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kManyRows = 256;

at::Tensor product(const PanelTerm& own, const ProductTerm& added, const at::Tensor& bias) {
  std::vector<PanelTerm> terms{own};
  if (added.a_MK.defined()) terms.push_back({in_rows(added.a_MK), added.b_KN});
  return panel_product(terms, {.bias_N = bias});
}

at::Tensor unrounded(const PanelTerm& own, const at::Tensor& bias) {
  return panel_product({own}, {.bias_N = bias, .wide = true});
}

at::Tensor added_to(const at::Tensor& sum, const at::Tensor& product) {
  return sum.defined() ? at::Tensor(sum).add_(product) : product;
}

class PanelLinear : public PackedLinear {
 public:
  PanelLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O)
      : weight_OI_(weight_OI), bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    return product(own(x_TI), added, bias_O_);
  }
  at::Tensor sums(const at::Tensor& x_TI) override { return unrounded(own(x_TI), bias_O_); }
  at::Tensor argmax(const at::Tensor& x_TI, int64_t num_outputs) override {
    return panel_argmax({own(x_TI)}, bias_O_, num_outputs);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return added_to(sum_TI, product({grad_TO, weight_OI_}, added, {}));
  }

 private:
  PanelTerm own(const at::Tensor& x_TI) {
    if (!kept_ && x_TI.size(0) < kManyRows) kept_.emplace(weight_OI_.t());
    return {x_TI, weight_OI_.t(), kept_ ? &*kept_ : nullptr};
  }

  at::Tensor weight_OI_;
  at::Tensor bias_O_;
  std::optional<PanelMatrix> kept_;
};

class IntegerPanelLinear : public PackedLinear {
 public:
  IntegerPanelLinear(const IntegerWeight& weight, const at::Tensor& bias_O)
      : panels_(weight), bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    return product(own(x_TI), added, bias_O_);
  }
  at::Tensor sums(const at::Tensor& x_TI) override { return unrounded(own(x_TI), bias_O_); }
  at::Tensor argmax(const at::Tensor& x_TI, int64_t num_outputs) override {
    return panel_argmax({own(x_TI)}, bias_O_, num_outputs);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return added_to(sum_TI, product({grad_TO, panels_.values()}, added, {}));
  }

 private:
  PanelTerm own(const at::Tensor& x_TI) const {
    return {.a_MK = x_TI, .b_KN = {}, .quantized = &panels_};
  }

  IntegerPanels panels_;
  at::Tensor bias_O_;
};

class BitsandbytesPanelLinear : public PackedLinear {
 public:
  BitsandbytesPanelLinear(const BitsandbytesWeight& weight, const at::Tensor& bias_O)
      : weight_(weight), bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    return product(own(x_TI, true), added, bias_O_);
  }
  at::Tensor sums(const at::Tensor& x_TI) override { return unrounded(own(x_TI, true), bias_O_); }
  at::Tensor argmax(const at::Tensor& x_TI, int64_t num_outputs) override {
    return panel_argmax({own(x_TI, true)}, bias_O_, num_outputs);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return added_to(sum_TI, product(own(grad_TO, false), added, {}));
  }

 private:
  PanelTerm own(const at::Tensor& rows, bool transposed) const {
    return {.a_MK = rows, .b_KN = {}, .coded = {&weight_, transposed}};
  }

  BitsandbytesWeight weight_;
  at::Tensor bias_O_;
};

std::shared_ptr<PackedLinear> pack_bitsandbytes(const BitsandbytesWeight& weight,
                                                const at::Tensor& bias_O) {
  return std::make_shared<BitsandbytesPanelLinear>(weight, bias_O);
}

std::shared_ptr<PackedLinear> pack_integer(const IntegerWeight& weight, const at::Tensor& bias_O) {
  return std::make_shared<IntegerPanelLinear>(weight, bias_O);
}

std::shared_ptr<PackedLinear> pack_linear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  return std::make_shared<PanelLinear>(weight_OI, bias_O);
}

}  // namespace

const FrozenLinearOps kFrozenLinearCpu = {pack_linear, pack_integer, pack_bitsandbytes};

}  // namespace convoy::kernels
