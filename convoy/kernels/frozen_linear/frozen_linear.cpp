// SPDX-License-Identifier: Apache-2.0
//
// oneDNN through LibTorch's operators: the weight is reordered once into the blocks that the GEMM
// wants, for forward as W and for backward as W^T. Where oneDNN is not built in, or turned off, the
// plain GEMM runs.
#include "convoy/kernels/frozen_linear/frozen_linear.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/custom_class.h>

#include "convoy/base/error.h"
#include "convoy/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows for which oneDNN picks the blocks; any number of rows may be multiplied later.
constexpr int64_t kTypicalRows = 1024;

using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, c10::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);
using ReorderWeight = at::Tensor(const at::Tensor&, std::optional<c10::SymInt>);

// [O, I] packed, or undefined where oneDNN is not there.
at::Tensor pack(const at::Tensor& weight_OI) {
  const auto schema =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_reorder_linear_weight", ""});
  if (!schema || !at::globalContext().userEnabledMkldnn() || weight_OI.numel() == 0) return {};
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

}  // namespace

struct FrozenLinear::State {
  at::Tensor weight_OI;
  at::Tensor bias_O;
  at::Tensor packed_OI;
  at::Tensor packed_IO;  // made at the first backward: generation never needs it

  at::Tensor forward(const at::Tensor& x) const {
    return multiply(x, packed_OI, weight_OI, bias_O);
  }
  at::Tensor input_gradient(const at::Tensor& grad) {
    if (!packed_IO.defined()) packed_IO = pack(weight_OI.t().contiguous());
    return multiply(grad, packed_IO, weight_OI.t(), {});
  }
};

namespace {

// Keeps the packed weights alive until backward has run.
struct SharedMap : torch::CustomClassHolder {
  std::function<at::Tensor(const at::Tensor&)> input_gradient;
};

struct FrozenLinearFunction : torch::autograd::Function<FrozenLinearFunction> {
  using Map = std::function<at::Tensor(const at::Tensor&)>;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Map& apply,
                            const Map& transposed) {
    auto shared = c10::make_intrusive<SharedMap>();
    shared->input_gradient = transposed;
    context->saved_data["map"] = c10::IValue::make_capsule(shared);
    return apply(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto shared =
        c10::static_intrusive_pointer_cast<SharedMap>(context->saved_data["map"].toCapsule());
    return {shared->input_gradient(grads[0].contiguous()), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

FrozenLinear::FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  require_supported(weight_OI, "frozen_linear");
  CONVOY_INVARIANT(weight_OI.dim() == 2 && weight_OI.is_contiguous(),
                   "frozen_linear wants a contiguous [O, I]");
  const at::NoGradGuard no_grad;
  const at::Tensor weight = weight_OI.detach();
  state_ = std::make_shared<State>(
      State{weight, bias_O.defined() ? bias_O.detach() : at::Tensor(), pack(weight), at::Tensor()});
}
FrozenLinear::~FrozenLinear() = default;
FrozenLinear::FrozenLinear(FrozenLinear&&) noexcept = default;

at::Tensor FrozenLinear::forward(const at::Tensor& x) const {
  const at::Tensor rows = x.contiguous();
  if (!records_gradient({rows})) return state_->forward(rows);
  const std::shared_ptr<State> state = state_;
  return FrozenLinearFunction::apply(
      rows, [state](const at::Tensor& input) { return state->forward(input); },
      [state](const at::Tensor& grad) { return state->input_gradient(grad); });
}

at::Tensor FrozenLinear::input_gradient(const at::Tensor& grad) const {
  const at::NoGradGuard no_grad;
  return state_->input_gradient(grad.contiguous());
}

}  // namespace convoy::kernels
