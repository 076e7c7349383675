// SPDX-License-Identifier: Apache-2.0
//
// The windows of a batch lie one after another with K - 1 rows of zeros between them. In such a
// buffer the kernel's view of every row is K * C elements from that row on: a matrix whose rows
// overlap. The few rows of a product that overlap two windows are skipped.
#include "convoy/model/kernels/conv_stage/conv_stage.h"

#include <ATen/ATen.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/conv_stage/norm_pool_ops.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
namespace {

// With fewer input channels than this, one product over the whole kernel is cheaper than one
// product for each row of the kernel.
constexpr int64_t kFewChannels = 32;

// The layout of a batch's windows in a buffer.
struct Spacing {
  int64_t windows;
  int64_t rows;    // in a window
  int64_t kernel;  // rows

  int64_t apart() const { return rows + kernel - 1; }
  int64_t margin() const { return (kernel - 1) / 2; }
  int64_t views() const { return windows * apart() - (kernel - 1); }

  at::Tensor buffer(int64_t channels, const at::TensorOptions& options) const {
    return at::zeros({windows, apart(), channels}, options);
  }
  // The windows themselves in a buffer.
  at::Tensor inner(const at::Tensor& buffer) const { return buffer.narrow(1, margin(), rows); }
  // The kernel's view of each row of a buffer.
  at::Tensor kernel_views(const at::Tensor& buffer) const {
    const int64_t channels = buffer.size(2);
    return buffer.as_strided({views(), kernel * channels}, {channels, 1});
  }
  // The result of a product over all views, as windows.
  at::Tensor as_windows(const at::Tensor& product) const {
    const int64_t columns = product.size(1);
    return product.as_strided({windows, rows, columns}, {apart() * columns, columns, 1});
  }
};

at::Tensor rounded(const at::Tensor& tensor, bool bf16) {
  return bf16 ? tensor.to(at::kBFloat16) : tensor;
}

// The weight as a matrix [K C, O].
at::Tensor kernel_matrix(const at::Tensor& weight_OCK, bool bf16) {
  return rounded(weight_OCK.permute({2, 1, 0}).reshape({-1, weight_OCK.size(0)}), bf16);
}

// The weight as a matrix [K O, C] with the rows of the kernel reversed, for the gradient of x.
at::Tensor reversed_kernel_matrix(const at::Tensor& weight_OCK, bool bf16) {
  return rounded(weight_OCK.flip({2}).permute({2, 0, 1}).reshape({-1, weight_OCK.size(1)}), bf16);
}

// `grads_RO`: the gradient of each view; zeros where a view overlaps two windows.
at::Tensor weight_gradient(const Spacing& spacing, const at::Tensor& x_buffer,
                           const at::Tensor& grads_RO) {
  const int64_t channels = x_buffer.size(2);
  if (channels < kFewChannels) {
    const at::Tensor product = matrix_product(
        {{grads_RO.t().contiguous(), spacing.kernel_views(x_buffer)}}, {.wide = true});
    return product.view({-1, spacing.kernel, channels}).permute({0, 2, 1}).contiguous();
  }
  const at::Tensor x_CR = x_buffer.view({-1, channels}).t().contiguous();
  std::vector<at::Tensor> by_row;
  for (int64_t row = 0; row < spacing.kernel; ++row)
    by_row.push_back(
        matrix_product({{x_CR.narrow(1, row, spacing.views()), grads_RO}}, {.wide = true}));
  return at::stack(by_row).permute({2, 1, 0}).contiguous();
}

void check(const at::Tensor& x_NLC, const ConvStageTensors& tensors,
           const ConvStageOptions& options) {
  const at::Tensor& weight_OCK = tensors.weight_OCK;
  CONVOY_INVARIANT(x_NLC.dim() == 3 && x_NLC.scalar_type() == at::kFloat,
                   "conv_stage needs fp32 windows [N, L, C]");
  CONVOY_INVARIANT(weight_OCK.dim() == 3 && weight_OCK.size(1) == x_NLC.size(2) &&
                       weight_OCK.size(2) % 2 == 1 && weight_OCK.scalar_type() == at::kFloat,
                   "conv_stage needs a kernel [O, {}, odd]", x_NLC.size(2));
  CONVOY_INVARIANT(options.pool == Pool::Mean || x_NLC.size(1) >= 2,
                   "conv_stage needs two rows to pool, found {}", x_NLC.size(1));
  CONVOY_INVARIANT(!options.training || x_NLC.size(0) * x_NLC.size(1) > 1,
                   "a norm over one row is not defined");
}

struct Norm {
  at::Tensor mean_O;
  at::Tensor inverse_deviation_O;
};

// The statistics of the batch, which also update the running statistics as in torch.
Norm batch_norm(const at::Tensor& z_NLO, const ConvStageTensors& tensors,
                const ConvStageOptions& options) {
  const at::Tensor found = norm_pool_ops(z_NLO.device()).statistics(z_NLO);
  const auto rows = static_cast<double>(z_NLO.size(0) * z_NLO.size(1));
  at::Tensor mean_O = tensors.running_mean_O;
  at::Tensor variance_O = tensors.running_variance_O;
  mean_O.lerp_(found[0] + tensors.bias_O, options.momentum);
  variance_O.lerp_(found[1] * (rows / (rows - 1)), options.momentum);
  return {found[0], (found[1] + options.epsilon).rsqrt()};
}

NormTensors norm_tensors(const Norm& norm, const ConvStageTensors& tensors) {
  const at::Tensor scale_O = tensors.gain_O * norm.inverse_deviation_O;
  return {norm.mean_O, norm.inverse_deviation_O, scale_O, tensors.shift_O - norm.mean_O * scale_O};
}

}  // namespace

at::Tensor conv_stage(const at::Tensor& x_NLC, const ConvStageTensors& tensors,
                      const ConvStageOptions& options) {
  check(x_NLC, tensors, options);
  const bool records = records_gradient(
      {x_NLC, tensors.weight_OCK, tensors.bias_O, tensors.gain_O, tensors.shift_O});
  CONVOY_INVARIANT(options.training || !records, "conv_stage is differentiable in training alone");
  const at::NoGradGuard no_grad;
  const Spacing spacing{x_NLC.size(0), x_NLC.size(1), tensors.weight_OCK.size(2)};
  const at::Tensor x_buffer = spacing.buffer(
      x_NLC.size(2), x_NLC.options().dtype(options.bf16 ? at::kBFloat16 : at::kFloat));
  spacing.inner(x_buffer).copy_(x_NLC);
  const at::Tensor product = matrix_product(
      {{spacing.kernel_views(x_buffer), kernel_matrix(tensors.weight_OCK, options.bf16)}},
      {.wide = true});
  const at::Tensor z_NLO = spacing.as_windows(product);
  // The bias is left out: the norm subtracts any constant.
  const Norm norm = options.training ? batch_norm(z_NLO, tensors, options)
                                     : Norm{tensors.running_mean_O - tensors.bias_O,
                                            (tensors.running_variance_O + options.epsilon).rsqrt()};
  const at::Tensor y =
      norm_pool_ops(z_NLO.device()).activate(z_NLO, norm_tensors(norm, tensors), options.pool);
  if (!records) return y;
  return with_backward(
      y,
      {.op = "conv_stage",
       .inputs = {x_NLC, tensors.weight_OCK, tensors.bias_O, tensors.gain_O, tensors.shift_O},
       .saved = {x_buffer, product, norm.mean_O, norm.inverse_deviation_O, tensors.weight_OCK,
                 tensors.gain_O, tensors.shift_O},
       .gradients = [spacing, options](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                       const std::vector<bool>& wanted) {
         const at::Tensor z = spacing.as_windows(saved[1]);
         const at::Tensor& weight_OCK = saved[4];
         ConvStageTensors affine;
         affine.gain_O = saved[5];
         affine.shift_O = saved[6];
         const at::Tensor grad_buffer = spacing.buffer(z.size(2), z.options());
         const NormPoolGradients of_norm =
             norm_pool_ops(z.device())
                 .gradients(grad, z, norm_tensors({saved[2], saved[3]}, affine), options.pool,
                            spacing.inner(grad_buffer));
         const at::Tensor grads = rounded(grad_buffer, options.bf16);
         std::vector<at::Tensor> gradients(5);
         if (wanted[0])
           gradients[0] = spacing.as_windows(matrix_product(
               {{spacing.kernel_views(grads), reversed_kernel_matrix(weight_OCK, options.bf16)}},
               {.wide = true}));
         if (wanted[1])
           gradients[1] = weight_gradient(
               spacing, saved[0],
               grads.view({-1, grads.size(2)}).narrow(0, spacing.margin(), spacing.views()));
         if (wanted[2]) gradients[2] = at::zeros_like(of_norm.shift_O);
         gradients[3] = of_norm.gain_O;
         gradients[4] = of_norm.shift_O;
         return gradients;
       }});
}

}  // namespace convoy::kernels
