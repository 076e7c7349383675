// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/short_convolution/short_convolution.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/row_index/row_slots.h"
#include "convoy/model/kernels/short_convolution/short_convolution_ops.h"

namespace convoy::kernels {
namespace {

void check_convolution(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows) {
  CONVOY_INVARIANT(x_TC.dim() == 2 && weight_CW.dim() == 2 && weight_CW.size(1) > 0 &&
                       weight_CW.size(0) == x_TC.size(1) &&
                       weight_CW.scalar_type() == x_TC.scalar_type(),
                   "short_convolution needs [T, C] inputs and a [C, W] weight of one dtype");
  CONVOY_INVARIANT(rows.num_tokens() == x_TC.size(0),
                   "short_convolution needs rows of the {} tokens, found {}", x_TC.size(0),
                   rows.num_tokens());
}

at::Tensor with_contiguous_channels(const at::Tensor& x_TC) {
  return x_TC.stride(1) == 1 ? x_TC : x_TC.contiguous();
}

}  // namespace

at::Tensor short_convolution(const at::Tensor& x_TC, const at::Tensor& weight_CW,
                             const RowIndex& rows) {
  check_convolution(x_TC, weight_CW, rows);
  const at::Tensor x = with_contiguous_channels(x_TC), weight = weight_CW.contiguous();
  const bool records = records_gradient({x, weight});
  const at::NoGradGuard no_grad;
  const at::Tensor y_TC = short_convolution_ops(x.device()).forward(x, weight, rows);
  if (!records) return y_TC;
  return with_backward(
      y_TC, {.op = "short_convolution",
             .inputs = {x, weight},
             .saved = {x, weight},
             .gradients = [rows](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                 const std::vector<bool>&) -> std::vector<at::Tensor> {
               const ShortConvolutionGradients gradients =
                   short_convolution_ops(grad.device()).backward(grad, saved[0], saved[1], rows);
               return {gradients.x_TC, gradients.weight_CW};
             }});
}

at::Tensor short_convolution_with_state(const at::Tensor& x_TC, const at::Tensor& weight_CW,
                                        const RowIndex& rows, const at::Tensor& tails_SVC,
                                        const std::vector<int64_t>& slots) {
  const at::NoGradGuard no_grad;
  check_convolution(x_TC, weight_CW, rows);
  const std::vector<int64_t> of_tail{weight_CW.size(1) - 1, x_TC.size(1)};
  CONVOY_INVARIANT(tails_SVC.scalar_type() == x_TC.scalar_type() && tails_SVC.dim() == 3 &&
                       tails_SVC.sizes().slice(1) == of_tail &&
                       (tails_SVC.size(0) == 0 || tails_SVC[0].is_contiguous()),
                   "short_convolution needs contiguous tails [W - 1, C] like its inputs");
  return short_convolution_ops(x_TC.device())
      .advance(with_contiguous_channels(x_TC), weight_CW.contiguous(), rows, tails_SVC,
               row_slots(slots, rows, tails_SVC.size(0), "short_convolution"));
}

}  // namespace convoy::kernels
