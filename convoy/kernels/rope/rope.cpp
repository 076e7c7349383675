// SPDX-License-Identifier: Apache-2.0
//
// Backward is the rotation by the negative angle.
#include "convoy/kernels/rope/rope.h"

#include "convoy/base/error.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor rotate_all(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                      const at::Tensor& positions_T, float direction) {
  const int64_t tokens = x_THE.size(0);
  const int64_t heads = x_THE.size(1);
  const int64_t half = x_THE.size(2) / 2;
  at::Tensor y_THE = at::empty(x_THE.sizes(), x_THE.options());
  const float* cos = cos_PE.const_data_ptr<float>();
  const float* sin = sin_PE.const_data_ptr<float>();
  const int64_t* positions = positions_T.const_data_ptr<int64_t>();
  with_element(x_THE, "rope", [&](auto element) {
    using Element = decltype(element);
    const auto* from = x_THE.const_data_ptr<Element>();
    auto* to = y_THE.mutable_data_ptr<Element>();
    for_rows(tokens, heads * 2 * half, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t table = positions[token] * half;
        for (int64_t head = 0; head < heads; ++head) {
          simd_kernels<Element>().rotate(from + token * x_THE.stride(0) + head * x_THE.stride(1),
                                         cos + table, sin + table,
                                         to + (token * heads + head) * 2 * half, half, direction);
        }
      }
    });
  });
  return y_THE;
}

struct RopeFunction : torch::autograd::Function<RopeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_THE,
                            const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                            const at::Tensor& positions_T) {
    context->save_for_backward({cos_PE, sin_PE, positions_T});
    return rotate_all(x_THE, cos_PE, sin_PE, positions_T, 1.0f);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grads[0].stride(-1) == 1 ? grads[0] : grads[0].contiguous();
    return {rotate_all(grad, saved[0], saved[1], saved[2], -1.0f), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  CONVOY_INVARIANT(
      x_THE.dim() == 3 && (x_THE.stride(2) == 1 || x_THE.numel() == 0) && x_THE.size(2) % 2 == 0,
      "rope wants [T, H, E] with contiguous, even E");
  CONVOY_INVARIANT(cos_PE.is_contiguous() && sin_PE.is_contiguous() &&
                       cos_PE.size(1) * 2 == x_THE.size(2) && sin_PE.sizes() == cos_PE.sizes(),
                   "rope wants contiguous tables of E/2 columns");
  CONVOY_INVARIANT(positions_T.is_contiguous() && positions_T.size(0) == x_THE.size(0),
                   "rope wants one position per token");
  if (!records_gradient({x_THE})) return rotate_all(x_THE, cos_PE, sin_PE, positions_T, 1.0f);
  return RopeFunction::apply(x_THE, cos_PE, sin_PE, positions_T);
}

}  // namespace convoy::kernels
