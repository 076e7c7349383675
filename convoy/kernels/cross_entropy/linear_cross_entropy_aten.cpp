// SPDX-License-Identifier: Apache-2.0
//
// Chunks of rows: logits in fp32, softmax in place, then d_hidden = p W and d_weight += p^T hidden
// with p rounded to the model's type.
#include "convoy/kernels/cross_entropy/head_products.h"
#include "convoy/kernels/cross_entropy/linear_cross_entropy_ops.h"

namespace convoy::kernels {
namespace {

HeadLoss loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const at::Tensor& labels_N,
              WantedGradients wanted) {
  const WideProducts& products = wide_products(hidden_ND);
  const auto wide = hidden_ND.options().dtype(at::kFloat);
  HeadLoss result;
  at::Tensor sum = at::zeros({}, wide.dtype(at::kDouble));
  if (wanted.hidden) result.hidden_ND = at::empty_like(hidden_ND);
  if (wanted.weight) result.weight_VD = at::zeros(weight_VD.sizes(), wide);
  const int64_t chunk_rows = logit_rows_per_chunk(weight_VD.size(0));
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

LabelLosses label_losses(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                         const at::Tensor& labels_N) {
  const WideProducts& products = wide_products(hidden_ND);
  const int64_t tokens = hidden_ND.size(0);
  LabelLosses result{.nll_N = at::empty({tokens}, hidden_ND.options().dtype(at::kFloat)),
                     .correct_N = at::empty({tokens}, hidden_ND.options().dtype(at::kBool))};
  const int64_t chunk_rows = logit_rows_per_chunk(weight_VD.size(0));
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

const CrossEntropyOps kCrossEntropyAten = {loss, scaled, label_losses};

}  // namespace convoy::kernels
