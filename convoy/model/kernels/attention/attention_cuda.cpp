// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's own kernels over packed rows: FlashAttention-2 or cuDNN's for bf16, the
// memory-efficient kernel of xFormers for fp32, each with cumulative lengths. Inputs that they
// refuse (heads wider than 256, widths that 8 does not divide, fp32 with a window, soft caps on
// scores) are computed blockwise.
#include "convoy/model/kernels/attention/attention_cuda.h"

#include "convoy/model/kernels/attention/attention_aten.h"
#include "convoy/model/kernels/attention/attention_cudnn.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kCausalFromTopLeft = 1;  // sdp::CustomMaskType::CausalFromTopLeft

bool takes_efficient(const at::Tensor& q_THE, const AttentionConfig& config) {
  return q_THE.scalar_type() == at::kFloat && q_THE.size(2) % 8 == 0 &&
         config.sliding_window == 0 && config.score_cap == 0 && q_THE.size(0) > 0;
}

// [T, K, E] -> [1, T, H, E]: the efficient kernel does not support groups.
at::Tensor for_every_head(const at::Tensor& x_TKE, int64_t heads) {
  const int64_t group = heads / x_TKE.size(1);
  return (group == 1 ? x_TKE : x_TKE.repeat_interleave(group, 1)).unsqueeze(0);
}

at::Tensor sum_of_group(const at::Tensor& grad_THE, const at::Tensor& like_TKE) {
  if (grad_THE.size(1) == like_TKE.size(1)) return grad_THE;
  return grad_THE.view({like_TKE.size(0), like_TKE.size(1), -1, like_TKE.size(2)}).sum({2});
}

AttentionOutput forward(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                        const RowIndex& rows, const AttentionConfig& config) {
  if (takes_cudnn(q_THE, config)) return cudnn_forward(q_THE, k_TKE, v_TKE, rows, config);
  const at::Tensor& starts = rows.device_starts();
  if (takes_flash(q_THE, config)) {
    auto [out, log_sum_exp, random_state, unused, mask] = at::_flash_attention_forward(
        q_THE, k_TKE, v_TKE, starts, starts, rows.longest(), rows.longest(), 0.0, true, false,
        config.scale, flash_window(config));
    return {out, {log_sum_exp, random_state, unused}};
  }
  if (takes_efficient(q_THE, config)) {
    const int64_t heads = q_THE.size(1);
    auto [out, log_sum_exp, seed, offset, longest_q, longest_k] = at::_efficient_attention_forward(
        q_THE.unsqueeze(0), for_every_head(k_TKE, heads), for_every_head(v_TKE, heads),
        std::nullopt, starts, starts, rows.longest(), rows.longest(), 0.0, kCausalFromTopLeft, true,
        config.scale);
    return {out.squeeze(0), {log_sum_exp, seed, offset}};
  }
  return blockwise::forward(q_THE, k_TKE, v_TKE, rows, config);
}

AttentionGradients backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                            const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const AttentionOutput& output, const RowIndex& rows,
                            const AttentionConfig& config) {
  if (takes_cudnn(q_THE, config))
    return cudnn_backward(grad_THE, q_THE, k_TKE, v_TKE, output, rows, config);
  const at::Tensor& starts = rows.device_starts();
  const std::vector<at::Tensor>& saved = output.for_backward;
  if (takes_flash(q_THE, config)) {
    auto [q, k, v] = at::_flash_attention_backward(
        grad_THE, q_THE, k_TKE, v_TKE, output.out_THE, saved[0], starts, starts, rows.longest(),
        rows.longest(), 0.0, true, saved[1], saved[2], config.scale, flash_window(config));
    return {q, k, v};
  }
  if (takes_efficient(q_THE, config)) {
    const int64_t heads = q_THE.size(1);
    auto [q, k, v, bias] = at::_efficient_attention_backward(
        grad_THE.unsqueeze(0), q_THE.unsqueeze(0), for_every_head(k_TKE, heads),
        for_every_head(v_TKE, heads), std::nullopt, output.out_THE.unsqueeze(0), starts, starts,
        rows.longest(), rows.longest(), saved[0], 0.0, saved[1], saved[2], kCausalFromTopLeft,
        false, config.scale);
    return {q.squeeze(0), sum_of_group(k.squeeze(0), k_TKE), sum_of_group(v.squeeze(0), v_TKE)};
  }
  return blockwise::backward(grad_THE, q_THE, k_TKE, v_TKE, output, rows, config);
}

}  // namespace

bool takes_flash(const at::Tensor& q_THE, const AttentionConfig& config) {
  return config.score_cap == 0 && !q_THE.is_cpu() && q_THE.scalar_type() == at::kBFloat16 &&
         q_THE.size(2) % 8 == 0 && q_THE.size(2) <= 256 && q_THE.size(0) > 0;
}

std::optional<int64_t> flash_window(const AttentionConfig& config) {
  if (config.sliding_window == 0) return std::nullopt;
  return config.sliding_window - 1;
}

const AttentionOps kAttentionCuda = {forward, backward};

}  // namespace convoy::kernels
