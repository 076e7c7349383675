// SPDX-License-Identifier: Apache-2.0
//
// The references for kernels (in double): ops as plain compositions of tensor operations, in the
// dtype of their inputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/kernels/rope/rope.h"
#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels::reference {

// Returns x under a soft cap; x itself with a cap of 0.
inline at::Tensor soft_cap(const at::Tensor& x, double cap) {
  return cap > 0 ? (x / cap).tanh() * cap : x;
}

// Computes the attention of one row, whose queries belong to the last q_THE.size(0) keys.
inline at::Tensor row_attention(const at::Tensor& q_THE, const at::Tensor& k_SKE,
                                const at::Tensor& v_SKE, const AttentionConfig& config) {
  const int64_t queries = q_THE.size(0);
  const int64_t keys = k_SKE.size(0);
  const int64_t group = q_THE.size(1) / std::max<int64_t>(k_SKE.size(1), 1);
  at::Tensor k_HSE = k_SKE.repeat_interleave(group, 1).transpose(0, 1);
  at::Tensor v_HSE = v_SKE.repeat_interleave(group, 1).transpose(0, 1);
  at::Tensor scores_HTS = soft_cap(
      at::matmul(q_THE.transpose(0, 1), k_HSE.transpose(1, 2)) * config.scale, config.score_cap);
  at::Tensor query_T1 = at::arange(keys - queries, keys, at::kLong).unsqueeze(1);
  at::Tensor key_1S = at::arange(keys, at::kLong).unsqueeze(0);
  at::Tensor hidden_TS = key_1S > query_T1;
  if (config.sliding_window > 0)
    hidden_TS = hidden_TS.logical_or(key_1S <= query_T1 - config.sliding_window);
  at::Tensor weights_HTS =
      scores_HTS.masked_fill(hidden_TS, -std::numeric_limits<double>::infinity()).softmax(-1);
  return at::matmul(weights_HTS, v_HSE).transpose(0, 1);
}

inline at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                                   const at::Tensor& v_TKE, const std::vector<int64_t>& row_starts,
                                   const AttentionConfig& config) {
  std::vector<at::Tensor> rows;
  for (size_t row = 0; row + 1 < row_starts.size(); ++row) {
    const int64_t begin = row_starts[row];
    const int64_t end = row_starts[row + 1];
    rows.push_back(row_attention(q_THE.slice(0, begin, end), k_TKE.slice(0, begin, end),
                                 v_TKE.slice(0, begin, end), config));
  }
  return rows.empty() ? at::empty_like(q_THE) : at::cat(rows, 0);
}

inline at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                       const at::Tensor& labels_T, double logit_cap = 0,
                                       at::Reduction::Reduction reduction = at::Reduction::Sum) {
  return at::cross_entropy_loss(soft_cap(at::matmul(hidden_TD, weight_VD.t()), logit_cap), labels_T,
                                {}, reduction, kIgnoredLabel);
}

inline at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                                   Activation activation) {
  const at::Tensor activated = activation == Activation::Silu       ? at::silu(gate_TF)
                               : activation == Activation::GeluTanh ? at::gelu(gate_TF, "tanh")
                                                                    : at::sigmoid(gate_TF);
  return activated * up_TF;
}

inline at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                           NormOrder order) {
  at::Tensor normed = x * at::rsqrt(x.square().mean(-1, true) + epsilon);
  return order == NormOrder::CastThenScale ? normed * weight_D : normed * (1 + weight_D);
}

inline at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                       const at::Tensor& positions_T) {
  at::Tensor cos_T1E = cos_PE.to(x_THE.scalar_type()).index_select(0, positions_T).unsqueeze(1);
  at::Tensor sin_T1E = sin_PE.to(x_THE.scalar_type()).index_select(0, positions_T).unsqueeze(1);
  std::vector<at::Tensor> halves = x_THE.chunk(2, -1);
  return at::cat(
      {halves[0] * cos_T1E - halves[1] * sin_T1E, halves[1] * cos_T1E + halves[0] * sin_T1E}, -1);
}

struct Share {
  int64_t id = 0;
  // The cumulated probability of the kept ids up to this one. A number between the previous end and
  // this end picks this id.
  double end = 0;
};

// The definition of sample_tokens(): a full sort in double. Returns the ids that may be picked, in
// rising order, or nothing if no token can be picked.
inline std::vector<Share> shares_of_row(std::span<const double> given, const SamplingRule& rule,
                                        std::span<const int32_t> seen = {}) {
  std::vector<double> logits(given.begin(), given.end());
  // The penalty is applied in fp32, as in transformers, because its rounding may decide between
  // neighbours.
  const auto penalty = static_cast<float>(rule.repetition_penalty);
  for (const int32_t id : seen) {
    const auto logit = static_cast<float>(given[id]);
    logits[id] = logit < 0 ? logit * penalty : logit / penalty;
  }
  if (std::any_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); })) return {};
  std::vector<int64_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  const double highest = logits[ids.front()];
  if (!std::isfinite(highest)) return {};
  if (rule.temperature == 0) return {{ids.front(), 1.0}};
  const auto weight = [&](int64_t id) {
    return std::exp((logits[id] - highest) / rule.temperature);
  };
  const auto sum = [&] {
    double total = 0;
    for (const int64_t id : ids) total += weight(id);
    return total;
  };
  if (rule.top_k > 0 && rule.top_k < static_cast<int64_t>(ids.size())) ids.resize(rule.top_k);
  if (rule.top_p < 1.0) {
    const double total = sum();
    double nucleus = 0;
    size_t count = 0;
    while (count < ids.size() && (count == 0 || nucleus < rule.top_p * total))
      nucleus += weight(ids[count++]);
    ids.resize(count);
  }
  std::erase_if(ids, [&](int64_t id) { return weight(id) < rule.min_p; });
  std::sort(ids.begin(), ids.end());
  const double total = sum();
  std::vector<Share> shares;
  double before = 0;
  for (const int64_t id : ids) {
    before += weight(id) / total;
    shares.push_back({id, before});
  }
  return shares;
}

}  // namespace convoy::kernels::reference
