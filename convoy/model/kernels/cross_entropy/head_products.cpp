// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/head_products.h"

#include "convoy/model/kernels/ops/op_table.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kLogitsPerChunk = 1 << 26;
constexpr int64_t kMostRowsOfChunk = 4096;

constexpr WideProducts kWidened = {[](const at::Tensor& a, const at::Tensor& b) {
                                     return at::mm(a.to(at::kFloat), b.to(at::kFloat));
                                   },
                                   [](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
                                     sum.addmm_(a.to(at::kFloat), b.to(at::kFloat));
                                   }};

// cuBLAS writes fp32 from bf16 operands: no widened copy of the weight is made.
constexpr WideProducts kMixed = {[](const at::Tensor& a, const at::Tensor& b) {
                                   return a.scalar_type() == at::kFloat ? at::mm(a, b)
                                                                        : at::mm(a, b, at::kFloat);
                                 },
                                 [](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
                                   if (a.scalar_type() == at::kFloat)
                                     sum.addmm_(a, b);
                                   else
                                     sum.add_(at::mm(a, b, at::kFloat));
                                 }};

int64_t rows_per_chunk(int64_t vocab) {
  return std::clamp<int64_t>(kLogitsPerChunk / std::max<int64_t>(vocab, 1), 1, kMostRowsOfChunk);
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

LabelLosses empty_label_losses(const at::Tensor& hidden_ND) {
  const int64_t tokens = hidden_ND.size(0);
  return {.nll_N = at::empty({tokens}, hidden_ND.options().dtype(at::kFloat)),
          .correct_N = at::empty({tokens}, hidden_ND.options().dtype(at::kBool))};
}

const WideProducts& wide_products(const at::Tensor& tensor) {
  return takes_cuda_ops(tensor.device()) ? kMixed : kWidened;
}

void for_logit_chunks(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                      const at::Tensor& labels_N,
                      const std::function<void(LogitChunk& chunk)>& body) {
  const WideProducts& products = wide_products(hidden_ND);
  const int64_t most = rows_per_chunk(weight_VD.size(0));
  for (int64_t begin = 0; begin < hidden_ND.size(0); begin += most) {
    const int64_t count = std::min(most, hidden_ND.size(0) - begin);
    const at::Tensor hidden_CD = hidden_ND.narrow(0, begin, count);
    LogitChunk chunk{.begin = begin,
                     .count = count,
                     .hidden_CD = hidden_CD,
                     .labels_C = labels_N.narrow(0, begin, count),
                     .logits_CV = products.multiply(hidden_CD, weight_VD.t())};
    body(chunk);
  }
}

}  // namespace convoy::kernels
