// SPDX-License-Identifier: Apache-2.0
//
// Rows of one length are a batch of [B, H, S, E], which LibTorch passes to cuDNN without a copy.
// Rows of different lengths are given by their first tokens, from which LibTorch makes cuDNN's
// ragged offsets, a few small launches each time; then all tensors are contiguous.
#include "convoy/model/kernels/attention/attention_cudnn.h"

#include <ATen/ATen.h>

#include "convoy/model/kernels/attention/attention_cuda.h"

namespace convoy::kernels {
namespace {

// Rows as cuDNN takes them.
class CudnnRows {
 public:
  explicit CudnnRows(const RowIndex& rows)
      : rows_(rows), is_batch_(rows.num_rows() * rows.longest() == rows.num_tokens()) {}

  at::Tensor open(const at::Tensor& x_THE) const {
    if (!is_batch_) return x_THE.contiguous();
    return x_THE.view({rows_.num_rows(), rows_.longest(), x_THE.size(1), x_THE.size(2)})
        .transpose(1, 2);
  }
  at::Tensor close(const at::Tensor& x, const at::Tensor& like_THE) const {
    return is_batch_ ? x.transpose(1, 2).reshape(like_THE.sizes()) : x;
  }
  // Undefined for a batch.
  at::Tensor starts() const { return is_batch_ ? at::Tensor() : rows_.device_starts(); }
  int64_t longest() const { return rows_.longest(); }

 private:
  const RowIndex& rows_;
  bool is_batch_;
};

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

bool takes_cudnn(const at::Tensor& q_THE, const AttentionConfig& config) {
  return config.kernel == AttentionKernel::Cudnn && takes_flash(q_THE, config) &&
         q_THE.size(2) <= kWidestCudnnHead && config.sliding_window == 0;
}

AttentionOutput cudnn_forward(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                              const at::Tensor& v_TKE, const RowIndex& index,
                              const AttentionConfig& config) {
  const CudnnRows rows(index);
  const std::optional<at::Tensor> starts = if_defined(rows.starts());
  const auto result = at::_cudnn_attention_forward(
      rows.open(q_THE), rows.open(k_TKE), rows.open(v_TKE), /*attn_bias=*/std::nullopt, starts,
      starts, rows.longest(), rows.longest(), /*compute_log_sumexp=*/true, /*dropout_p=*/0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false, config.scale);
  return {rows.close(std::get<0>(result), q_THE),
          {std::get<1>(result), std::get<6>(result), std::get<7>(result)}};
}

AttentionGradients cudnn_backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                                  const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                                  const AttentionOutput& output, const RowIndex& index,
                                  const AttentionConfig& config) {
  const CudnnRows rows(index);
  const std::vector<at::Tensor>& saved = output.for_backward;  // log-sums, seed, offset
  auto [q, k, v] = at::_cudnn_attention_backward(
      rows.open(grad_THE), rows.open(q_THE), rows.open(k_TKE), rows.open(v_TKE),
      rows.open(output.out_THE), saved[0], saved[1], saved[2], /*attn_bias=*/at::Tensor(),
      rows.starts(), rows.starts(), rows.longest(), rows.longest(), /*dropout_p=*/0.0,
      /*is_causal=*/true, config.scale);
  return {rows.close(q, q_THE), rows.close(k, k_TKE), rows.close(v, v_TKE)};
}

}  // namespace convoy::kernels
