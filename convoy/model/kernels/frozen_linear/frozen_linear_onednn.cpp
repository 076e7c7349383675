// SPDX-License-Identifier: Apache-2.0
//
// oneDNN through LibTorch's operators, for CPUs with units for matrices: the weight is reordered
// once into the blocks that the GEMM takes, for forward as W and for backward as W^T. Where oneDNN
// is not built in, or turned off, the plain GEMM runs.
#include <ATen/core/dispatch/Dispatcher.h>

#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"

namespace convoy::kernels {
namespace {

// Rows for which oneDNN picks the blocks; any number of rows may be multiplied later.
constexpr int64_t kTypicalRows = 1024;

using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, c10::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);
using ReorderWeight = at::Tensor(const at::Tensor&, std::optional<c10::SymInt>);

// oneDNN multiplies bf16 only on CPUs with AVX-512 or AVX-NE-CONVERT, and throws on others.
bool multiplies(at::ScalarType dtype) {
  if (dtype != at::kBFloat16) return true;
  const auto schema =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_is_mkldnn_bf16_supported", ""});
  static const bool in_bf16 = schema && schema->typed<bool()>().call();
  return in_bf16;
}

// [O, I] packed, or undefined where oneDNN is not there or cannot multiply it.
at::Tensor pack(const at::Tensor& weight_OI) {
  const auto schema =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_reorder_linear_weight", ""});
  if (!schema || !at::globalContext().userEnabledMkldnn() || weight_OI.numel() == 0 ||
      !multiplies(weight_OI.scalar_type()))
    return {};
  static const auto reorder = schema->typed<ReorderWeight>();
  return reorder.call(weight_OI, c10::SymInt(kTypicalRows));
}

at::Tensor multiply(const at::Tensor& x, const at::Tensor& packed_OI, const at::Tensor& plain_OI,
                    const at::Tensor& bias_O) {
  const std::optional<at::Tensor> bias = bias_O.defined() ? std::optional(bias_O) : std::nullopt;
  if (!packed_OI.defined() || x.numel() == 0) return at::linear(x, plain_OI, bias);
  static const auto linear = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                 .typed<LinearPointwise>();
  return linear.call(x, packed_OI, bias, "none", c10::List<std::optional<at::Scalar>>(),
                     std::nullopt);
}

at::Tensor plus(at::Tensor y, const ProductTerm& added) {
  return added.a_MK.defined() ? y.addmm_(added.a_MK, added.b_KN) : y;
}

class OneDnnLinear : public PackedLinear {
 public:
  OneDnnLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O)
      : weight_OI_(weight_OI), bias_O_(bias_O), packed_OI_(pack(weight_OI)) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    return plus(multiply(x_TI, packed_OI_, weight_OI_, bias_O_), added);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    if (!packed_IO_.defined()) packed_IO_ = pack(weight_OI_.t().contiguous());
    at::Tensor gradient = plus(multiply(grad_TO, packed_IO_, weight_OI_.t(), {}), added);
    return sum_TI.defined() ? at::Tensor(sum_TI).add_(gradient) : gradient;
  }

 private:
  at::Tensor weight_OI_;
  at::Tensor bias_O_;
  at::Tensor packed_OI_;
  at::Tensor packed_IO_;  // made at the first backward: generation never needs it
};

std::shared_ptr<PackedLinear> pack_linear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  return std::make_shared<OneDnnLinear>(weight_OI, bias_O);
}

}  // namespace

// oneDNN has no weights of these formats. Quantised weights are decoded as a whole, so that many
// rows reach the matrix units.
const FrozenLinearOps kFrozenLinearOneDnn = {pack_linear, kFrozenLinearCpu.pack_integer,
                                             kFrozenLinearAten.pack_bitsandbytes};

}  // namespace convoy::kernels
