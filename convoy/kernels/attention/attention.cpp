// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/attention/attention.h"

#include "convoy/base/error.h"
#include "convoy/kernels/attention/attention_tasks.h"
#include "convoy/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

using attention::Inputs;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor with_contiguous_features(const at::Tensor& x) {
  return x.stride(-1) == 1 ? x : x.contiguous();
}

Inputs packed_inputs(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                     std::vector<int64_t> row_starts, const AttentionConfig& config) {
  Inputs inputs{.q_THE = q_THE, .rows = {}, .row_starts = std::move(row_starts), .config = config};
  for (size_t row = 0; row + 1 < inputs.row_starts.size(); ++row) {
    const int64_t begin = inputs.row_starts[row];
    const int64_t end = inputs.row_starts[row + 1];
    inputs.rows.push_back({k_TKE.slice(0, begin, end), v_TKE.slice(0, begin, end)});
  }
  return inputs;
}

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q_THE,
                            const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            std::vector<int64_t> row_starts, double scale, int64_t sliding_window) {
    const attention::Output output = attention::run_forward(
        packed_inputs(q_THE, k_TKE, v_TKE, row_starts, {scale, sliding_window}));
    context->save_for_backward({q_THE, k_TKE, v_TKE, output.out_THE, output.log_sum_exp_HT});
    context->saved_data["row_starts"] = std::move(row_starts);
    context->saved_data["scale"] = scale;
    context->saved_data["sliding_window"] = sliding_window;
    return output.out_THE;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const AttentionConfig config{context->saved_data["scale"].toDouble(),
                                 context->saved_data["sliding_window"].toInt()};
    const Inputs inputs = packed_inputs(saved[0], saved[1], saved[2],
                                        context->saved_data["row_starts"].toIntVector(), config);
    attention::Gradients gradients =
        attention::run_backward(inputs, {saved[3], saved[4]}, grads[0].contiguous());
    return {gradients.q_THE, gradients.k_TKE, gradients.v_TKE,
            at::Tensor(),    at::Tensor(),    at::Tensor()};
  }
};

void check_shapes(const at::Tensor& q_THE, const at::Tensor& k_SKE, const at::Tensor& v_SKE) {
  CONVOY_INVARIANT(q_THE.dim() == 3 && k_SKE.dim() == 3 && v_SKE.sizes() == k_SKE.sizes(),
                   "attention wants [T, H, E] queries and [S, K, E] keys and values");
  CONVOY_INVARIANT(
      k_SKE.size(1) > 0 && q_THE.size(1) % k_SKE.size(1) == 0 && q_THE.size(2) == k_SKE.size(2),
      "attention wants query heads that are a multiple of key heads, found {} and {}",
      q_THE.size(1), k_SKE.size(1));
  CONVOY_INVARIANT(
      q_THE.scalar_type() == k_SKE.scalar_type() && q_THE.scalar_type() == v_SKE.scalar_type(),
      "attention wants one dtype");
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                            const at::Tensor& v_TKE, const std::vector<int64_t>& row_starts,
                            const AttentionConfig& config) {
  check_shapes(q_THE, k_TKE, v_TKE);
  CONVOY_INVARIANT(!row_starts.empty() && row_starts.front() == 0 &&
                       row_starts.back() == q_THE.size(0) && k_TKE.size(0) == q_THE.size(0) &&
                       std::is_sorted(row_starts.begin(), row_starts.end()),
                   "attention wants row starts from 0 to the {} tokens", q_THE.size(0));
  const at::Tensor q = with_contiguous_features(q_THE);
  const at::Tensor k = with_contiguous_features(k_TKE);
  const at::Tensor v = with_contiguous_features(v_TKE);
  if (!records_gradient({q, k, v}))
    return attention::run_forward(packed_inputs(q, k, v, row_starts, config)).out_THE;
  return PackedAttentionFunction::apply(q, k, v, row_starts, config.scale, config.sliding_window);
}

at::Tensor cached_attention(const at::Tensor& q_THE, const std::vector<CachedRow>& cached,
                            const std::vector<int64_t>& row_starts, const AttentionConfig& config) {
  CONVOY_INVARIANT(row_starts.size() == cached.size() + 1 && row_starts.back() == q_THE.size(0),
                   "attention wants one cached row per row of queries");
  Inputs inputs{.q_THE = with_contiguous_features(q_THE),
                .rows = {},
                .row_starts = row_starts,
                .config = config};
  for (size_t row = 0; row < cached.size(); ++row) {
    check_shapes(q_THE, cached[row].k_SKE, cached[row].v_SKE);
    CONVOY_INVARIANT(cached[row].k_SKE.size(0) >= row_starts[row + 1] - row_starts[row],
                     "row {} has more queries than cached keys", row);
    inputs.rows.push_back(
        {with_contiguous_features(cached[row].k_SKE), with_contiguous_features(cached[row].v_SKE)});
  }
  const at::NoGradGuard no_grad;
  return attention::run_forward(inputs).out_THE;
}

}  // namespace convoy::kernels
