// SPDX-License-Identifier: Apache-2.0
//
// Chunks of rows: logits in fp32, softmax in place, then d_hidden = p W and d_weight += p^T hidden
// with p rounded to the model's type.
#include "convoy/kernels/cross_entropy/linear_cross_entropy_ops.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kLogitsPerChunk = 1 << 26;  // 256 MiB of fp32
constexpr int64_t kMostRows = 4096;

int64_t rows_per_chunk(int64_t vocab) {
  return std::clamp<int64_t>(kLogitsPerChunk / std::max<int64_t>(vocab, 1), 1, kMostRows);
}

// Products of two tensors of the model's type with sums and result in fp32.
struct WideProducts {
  at::Tensor (*multiply)(const at::Tensor& a, const at::Tensor& b);
  void (*add_product)(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);
};

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

template <const WideProducts& products>
HeadLoss loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const at::Tensor& labels_N,
              WantedGradients wanted) {
  const auto wide = hidden_ND.options().dtype(at::kFloat);
  HeadLoss result;
  at::Tensor sum = at::zeros({}, wide.dtype(at::kDouble));
  if (wanted.hidden) result.hidden_ND = at::empty_like(hidden_ND);
  if (wanted.weight) result.weight_VD = at::zeros(weight_VD.sizes(), wide);
  const int64_t chunk_rows = rows_per_chunk(weight_VD.size(0));
  for (int64_t begin = 0; begin < hidden_ND.size(0); begin += chunk_rows) {
    const int64_t count = std::min(chunk_rows, hidden_ND.size(0) - begin);
    const at::Tensor hidden_CD = hidden_ND.narrow(0, begin, count);
    const at::Tensor labels_C1 = labels_N.narrow(0, begin, count).unsqueeze(1);
    at::Tensor logits_CV = products.multiply(hidden_CD, weight_VD.t());
    const at::Tensor sums_C1 = logits_CV.logsumexp({1}, true);
    sum.add_(sums_C1.sub(logits_CV.gather(1, labels_C1)).sum(at::kDouble));
    if (!wanted.hidden && !wanted.weight) continue;
    at::Tensor grad_CV = logits_CV.sub_(sums_C1).exp_();
    grad_CV.scatter_add_(1, labels_C1, at::full({count, 1}, -1.0, wide));
    grad_CV = grad_CV.to(hidden_ND.scalar_type());
    if (wanted.hidden) result.hidden_ND.narrow(0, begin, count).copy_(at::mm(grad_CV, weight_VD));
    if (wanted.weight) products.add_product(result.weight_VD, grad_CV.t(), hidden_CD);
  }
  result.loss = sum.to(at::kFloat);
  return result;
}

at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& factor, at::ScalarType dtype) {
  return gradient.to(at::kFloat).mul(factor).to(dtype);
}

template <const WideProducts& products>
LabelLosses label_losses(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                         const at::Tensor& labels_N) {
  const int64_t tokens = hidden_ND.size(0);
  LabelLosses result{.nll_N = at::empty({tokens}, hidden_ND.options().dtype(at::kFloat)),
                     .correct_N = at::empty({tokens}, hidden_ND.options().dtype(at::kBool))};
  const int64_t chunk_rows = rows_per_chunk(weight_VD.size(0));
  for (int64_t begin = 0; begin < tokens; begin += chunk_rows) {
    const int64_t count = std::min(chunk_rows, tokens - begin);
    const at::Tensor labels_C = labels_N.narrow(0, begin, count);
    const at::Tensor logits_CV =
        products.multiply(hidden_ND.narrow(0, begin, count), weight_VD.t());
    const at::Tensor of_label_C = logits_CV.gather(1, labels_C.unsqueeze(1)).squeeze(1);
    result.nll_N.narrow(0, begin, count).copy_(logits_CV.logsumexp({1}).sub_(of_label_C));
    result.correct_N.narrow(0, begin, count).copy_(logits_CV.argmax(1).eq(labels_C));
  }
  return result;
}

}  // namespace

const CrossEntropyOps kCrossEntropyAten = {loss<kWidened>, scaled, label_losses<kWidened>};
const CrossEntropyOps kCrossEntropyCuda = {loss<kMixed>, scaled, label_losses<kMixed>};

}  // namespace convoy::kernels
