// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/head_products.h"

#include "convoy/model/kernels/ops/cuda_devices.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kLogitsPerChunk = 1 << 26;
constexpr int64_t kMostRowsOfChunk = 4096;
constexpr int64_t kRowsOfTile = 128;

at::Tensor widened_product(const at::Tensor& a, const at::Tensor& b) {
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

void add_widened_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.defined())
    sum.addmm_(a.to(at::kFloat), b.to(at::kFloat));
  else
    sum = widened_product(a, b);
}

// cuBLAS writes fp32 from bf16 operands: no widened copy of the weight is made.
at::Tensor mixed_product(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kFloat ? at::mm(a, b) : at::mm(a, b, at::kFloat);
}

void add_mixed_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (!sum.defined())
    sum = mixed_product(a, b);
  else if (a.scalar_type() == at::kFloat)
    sum.addmm_(a, b);
  else
    at::addmm_out(sum, sum, a, b, at::kFloat);  // added up within the product
}

constexpr WideProducts kWidened = {widened_product, add_widened_product};
constexpr WideProducts kMixed = {mixed_product, add_mixed_product};

int64_t up_to(int64_t count, int64_t step) { return (count + step - 1) / step; }

// The rows of a chunk, so that all chunks have about the same size.
int64_t rows_per_chunk(int64_t rows, int64_t vocab, int64_t least) {
  const int64_t most = std::clamp<int64_t>(
      std::max(kLogitsPerChunk / std::max<int64_t>(vocab, 1), least), 1, kMostRowsOfChunk);
  if (most < kRowsOfTile) return most;
  const int64_t tiles = std::max<int64_t>(up_to(rows, kRowsOfTile), 1);
  const int64_t chunks = up_to(tiles, most / kRowsOfTile);
  return up_to(tiles, chunks) * kRowsOfTile;
}

}  // namespace

HeadLoss empty_head_loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                         WantedGradients wanted) {
  HeadLoss result;
  if (wanted.hidden) result.hidden_ND = at::empty_like(hidden_ND);
  if (wanted.weight)
    result.weight_VD = at::zeros(weight_VD.sizes(), hidden_ND.options().dtype(at::kFloat));
  return result;
}

HeadLoss head_loss_to_add(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                          WantedGradients wanted) {
  wanted.weight = wanted.weight && hidden_ND.size(0) == 0;
  return empty_head_loss(hidden_ND, weight_VD, wanted);
}

LabelLosses empty_label_losses(const at::Tensor& hidden_ND) {
  const int64_t tokens = hidden_ND.size(0);
  return {.nll_N = at::empty({tokens}, hidden_ND.options().dtype(at::kFloat)),
          .correct_N = at::empty({tokens}, hidden_ND.options().dtype(at::kBool))};
}

const WideProducts& wide_products(const at::Tensor& tensor) {
  return takes_cuda_ops(tensor.device()) ? kMixed : kWidened;
}

at::Tensor capped_by_ops(const at::Tensor& logits, double logit_cap) {
  return logits.to(at::kFloat).div_(logit_cap).tanh_().mul_(logit_cap);
}

void for_logit_chunks(const at::Tensor& hidden_ND, const OutputHead& head,
                      const at::Tensor& labels_N, WantedGradients wanted,
                      const std::function<void(LogitChunk& chunk)>& body) {
  const WideProducts& products = wide_products(hidden_ND);
  const at::Tensor& weight_VD = head.weight_VD;
  const int64_t most =
      rows_per_chunk(hidden_ND.size(0), weight_VD.size(0), wanted.weight ? weight_VD.size(1) : 0);
  for (int64_t begin = 0; begin < hidden_ND.size(0); begin += most) {
    const int64_t count = std::min(most, hidden_ND.size(0) - begin);
    const at::Tensor hidden_CD = hidden_ND.narrow(0, begin, count);
    LogitChunk chunk{.begin = begin,
                     .count = count,
                     .hidden_CD = hidden_CD,
                     .labels_C = labels_N.narrow(0, begin, count),
                     .logits_CV = products.multiply(hidden_CD, weight_VD.t())};
    if (head.form.cap > 0) chunk.logits_CV = capped_by_ops(chunk.logits_CV, head.form.cap);
    if (head.form.temperature != 1) chunk.logits_CV.mul_(head.logit_factor());
    body(chunk);
  }
}

}  // namespace convoy::kernels
