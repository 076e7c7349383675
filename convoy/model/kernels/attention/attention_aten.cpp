// SPDX-License-Identifier: Apache-2.0
//
// Query heads that share keys are rows of one matrix: [K, G * n, E] against [K, S, E], with G query
// heads per key head and n queries of a block. One product serves all of them, and in backward it
// sums the gradients of keys and values over the group. Everything is computed in fp32.
#include "convoy/model/kernels/attention/attention_aten.h"

#include <cmath>

namespace convoy::kernels::blockwise {
namespace {

constexpr int64_t kQueryBlock = 512;

// Queries begin .. begin + count of a row, and all keys that at least one of these queries sees.
struct AttentionBlock {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t first_key = 0;
  int64_t num_keys = 0;
  int64_t position = 0;  // place of query `begin` among the keys
};

std::vector<AttentionBlock> blocks_of(int64_t queries, int64_t keys,
                                      const AttentionConfig& config) {
  std::vector<AttentionBlock> blocks;
  for (int64_t begin = 0; begin < queries; begin += kQueryBlock) {
    AttentionBlock block{.begin = begin, .count = std::min(kQueryBlock, queries - begin)};
    block.position = keys - queries + begin;
    if (config.sliding_window > 0)
      block.first_key = std::max<int64_t>(0, block.position - config.sliding_window + 1);
    block.num_keys = block.position + block.count - block.first_key;
    blocks.push_back(block);
  }
  return blocks;
}

// [n, H, E] -> fp32 [K, G * n, E].
at::Tensor by_key_head(const at::Tensor& x_THE, int64_t key_heads) {
  const int64_t tokens = x_THE.size(0);
  const int64_t features = x_THE.size(2);
  return x_THE.reshape({tokens, key_heads, -1, features})
      .permute({1, 2, 0, 3})
      .reshape({key_heads, -1, features})
      .to(at::kFloat);
}

// The inverse of by_key_head(): copies x_KNE into x_THE.
void store_by_token(const at::Tensor& x_KNE, const at::Tensor& x_THE) {
  const int64_t tokens = x_THE.size(0);
  const int64_t key_heads = x_KNE.size(0);
  x_THE.copy_(x_KNE.view({key_heads, -1, tokens, x_KNE.size(2)})
                  .permute({2, 0, 1, 3})
                  .reshape(x_THE.sizes()));
}

// [S, K, E] of the block's keys -> fp32 [K, S, E].
at::Tensor keys_of(const at::Tensor& x_SKE, const AttentionBlock& block) {
  return x_SKE.narrow(0, block.first_key, block.num_keys).transpose(0, 1).to(at::kFloat);
}

// scale * q k^T under the soft cap, -inf where a query does not see a key: [K, G * n, S]. With a
// cap, `slope` (may be null) receives its slope at each score.
at::Tensor scores_of(const at::Tensor& q_KNE, const at::Tensor& k_KSE, const AttentionBlock& block,
                     const AttentionConfig& config, at::Tensor* slope = nullptr) {
  const auto integers = q_KNE.options().dtype(at::kLong);
  const at::Tensor query = at::arange(block.position, block.position + block.count, integers);
  const at::Tensor key = at::arange(block.first_key, block.first_key + block.num_keys, integers);
  const at::Tensor distance = query.unsqueeze(1) - key.unsqueeze(0);
  at::Tensor hidden = distance.lt(0);
  if (config.sliding_window > 0) hidden = hidden.logical_or(distance.ge(config.sliding_window));
  at::Tensor scores = at::bmm(q_KNE, k_KSE.transpose(1, 2)).mul_(config.scale);
  if (config.score_cap > 0) {
    scores.div_(config.score_cap).tanh_();
    if (slope != nullptr) *slope = scores.square().neg_().add_(1.0);
    scores.mul_(config.score_cap);
  }
  scores.view({scores.size(0), -1, block.count, block.num_keys}).masked_fill_(hidden, -INFINITY);
  return scores;
}

// Attention of one row; log_sum_exp [K, G, queries] may be undefined.
void row_forward(const at::Tensor& q_THE, const CachedRow& row, const AttentionConfig& config,
                 const at::Tensor& out_THE, const at::Tensor& log_sum_exp) {
  const int64_t key_heads = row.k_SKE.size(1);
  for (const AttentionBlock& block : blocks_of(q_THE.size(0), row.k_SKE.size(0), config)) {
    const at::Tensor q_KNE = by_key_head(q_THE.narrow(0, block.begin, block.count), key_heads);
    const at::Tensor scores = scores_of(q_KNE, keys_of(row.k_SKE, block), block, config);
    const at::Tensor sums = scores.logsumexp({-1}, true);
    if (log_sum_exp.defined())
      log_sum_exp.narrow(2, block.begin, block.count)
          .copy_(sums.view({key_heads, -1, block.count}));
    const at::Tensor out_KNE = at::bmm(scores.sub(sums).exp_(), keys_of(row.v_SKE, block));
    store_by_token(out_KNE, out_THE.narrow(0, block.begin, block.count));
  }
}

struct RowGradients {
  at::Tensor q_THE;
  at::Tensor k_KSE;  // fp32, zeroed
  at::Tensor v_KSE;
};

void row_backward(const at::Tensor& grad_THE, const at::Tensor& q_THE, const CachedRow& row,
                  const at::Tensor& out_THE, const at::Tensor& log_sum_exp,
                  const AttentionConfig& config, const RowGradients& gradients) {
  const int64_t key_heads = row.k_SKE.size(1);
  for (const AttentionBlock& block : blocks_of(q_THE.size(0), row.k_SKE.size(0), config)) {
    const auto of_block = [&](const at::Tensor& x_THE) {
      return by_key_head(x_THE.narrow(0, block.begin, block.count), key_heads);
    };
    const at::Tensor q_KNE = of_block(q_THE);
    const at::Tensor grad_KNE = of_block(grad_THE);
    const at::Tensor k_KSE = keys_of(row.k_SKE, block);
    const at::Tensor sums =
        log_sum_exp.narrow(2, block.begin, block.count).reshape({key_heads, -1, 1});
    at::Tensor slope;
    const at::Tensor p = scores_of(q_KNE, k_KSE, block, config, &slope).sub_(sums).exp_();
    const at::Tensor delta = grad_KNE.mul(of_block(out_THE)).sum({-1}, true);
    at::Tensor grad_scores = at::bmm(grad_KNE, keys_of(row.v_SKE, block).transpose(1, 2));
    grad_scores.sub_(delta).mul_(p).mul_(config.scale);
    if (slope.defined()) grad_scores.mul_(slope);
    gradients.v_KSE.narrow(1, block.first_key, block.num_keys)
        .add_(at::bmm(p.transpose(1, 2), grad_KNE));
    gradients.k_KSE.narrow(1, block.first_key, block.num_keys)
        .add_(at::bmm(grad_scores.transpose(1, 2), q_KNE));
    store_by_token(at::bmm(grad_scores, k_KSE),
                   gradients.q_THE.narrow(0, block.begin, block.count));
  }
}

}  // namespace

AttentionOutput forward(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                        const RowIndex& rows, const AttentionConfig& config) {
  const int64_t key_heads = k_TKE.size(1);
  const at::Tensor out_THE = at::empty(q_THE.sizes(), q_THE.options());
  const at::Tensor log_sum_exp = at::empty({key_heads, q_THE.size(1) / key_heads, q_THE.size(0)},
                                           q_THE.options().dtype(at::kFloat));
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    const auto of_row = [&](const at::Tensor& x) {
      return x.narrow(0, rows.begin(row), rows.length(row));
    };
    row_forward(of_row(q_THE), {of_row(k_TKE), of_row(v_TKE)}, config, of_row(out_THE),
                log_sum_exp.narrow(2, rows.begin(row), rows.length(row)));
  }
  return {out_THE, {log_sum_exp}};
}

AttentionGradients backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                            const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const AttentionOutput& output, const RowIndex& rows,
                            const AttentionConfig& config) {
  AttentionGradients gradients{at::empty(q_THE.sizes(), q_THE.options()),
                               at::empty(k_TKE.sizes(), k_TKE.options()),
                               at::empty(v_TKE.sizes(), v_TKE.options())};
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    const auto of_row = [&](const at::Tensor& x) {
      return x.narrow(0, rows.begin(row), rows.length(row));
    };
    const auto zeros = at::zeros({k_TKE.size(1), rows.length(row), k_TKE.size(2)},
                                 k_TKE.options().dtype(at::kFloat));
    const RowGradients of_this{of_row(gradients.q_THE), zeros, zeros.clone()};
    row_backward(
        of_row(grad_THE), of_row(q_THE), {of_row(k_TKE), of_row(v_TKE)}, of_row(output.out_THE),
        output.for_backward[0].narrow(2, rows.begin(row), rows.length(row)), config, of_this);
    of_row(gradients.k_TKE).copy_(of_this.k_KSE.transpose(0, 1));
    of_row(gradients.v_TKE).copy_(of_this.v_KSE.transpose(0, 1));
  }
  return gradients;
}

at::Tensor cached(const at::Tensor& q_THE, const std::vector<CachedRow>& cached,
                  const RowIndex& rows, const AttentionConfig& config) {
  const at::Tensor out_THE = at::empty(q_THE.sizes(), q_THE.options());
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    row_forward(q_THE.narrow(0, rows.begin(row), rows.length(row)), cached[row], config,
                out_THE.narrow(0, rows.begin(row), rows.length(row)), {});
  return out_THE;
}

}  // namespace convoy::kernels::blockwise

namespace convoy::kernels {

const AttentionOps kAttentionAten = {blockwise::forward, blockwise::backward};

}  // namespace convoy::kernels
