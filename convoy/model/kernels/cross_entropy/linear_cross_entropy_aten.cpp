// SPDX-License-Identifier: Apache-2.0
//
// Chunks of rows: logits in fp32, softmax in place, then d_hidden = p W and d_weight += p^T hidden
// with p rounded to the model's type. Under a soft cap p is multiplied by its slope, and at a
// temperature by the factor of the logits.
#include "convoy/model/kernels/cross_entropy/head_products.h"

namespace convoy::kernels {
namespace {

// The slope of a soft cap, from the logits that it gave: 1 - tanh^2.
at::Tensor slope_of(const at::Tensor& logits_CV, double bound) {
  return logits_CV.div(bound).square_().neg_().add_(1.0);
}

HeadLoss loss(const at::Tensor& hidden_ND, const OutputHead& head, const HeadTargets& targets,
              WantedGradients wanted) {
  const at::Tensor& weight_VD = head.weight_VD;
  const WideProducts& products = wide_products(hidden_ND);
  const auto wide = hidden_ND.options().dtype(at::kFloat);
  HeadLoss result = head_loss_to_add(hidden_ND, weight_VD, wanted);
  at::Tensor sum = at::zeros({}, wide.dtype(at::kDouble));
  for_logit_chunks(hidden_ND, head, targets.labels_N, wanted, [&](LogitChunk& chunk) {
    const at::Tensor labels_C1 = chunk.labels_C.unsqueeze(1);
    const at::Tensor sums_C1 = chunk.logits_CV.logsumexp({1}, true);
    const at::Tensor nll_C1 = sums_C1.sub(chunk.logits_CV.gather(1, labels_C1));
    at::Tensor weights_C1;
    if (targets.weights_N.defined())
      weights_C1 = targets.weights_N.narrow(0, chunk.begin, chunk.count).unsqueeze(1);
    sum.add_((weights_C1.defined() ? nll_C1.mul(weights_C1) : nll_C1).sum(at::kDouble));
    if (!wanted.hidden && !wanted.weight) return;
    at::Tensor slope_CV;
    if (head.form.cap > 0) slope_CV = slope_of(chunk.logits_CV, head.bound());
    at::Tensor grad_CV = chunk.logits_CV.sub_(sums_C1).exp_();
    grad_CV.scatter_add_(1, labels_C1, at::full({chunk.count, 1}, -1.0, wide));
    if (weights_C1.defined()) grad_CV.mul_(weights_C1);
    if (slope_CV.defined()) grad_CV.mul_(slope_CV);
    if (head.form.temperature != 1) grad_CV.mul_(head.logit_factor());
    grad_CV = grad_CV.to(hidden_ND.scalar_type());
    if (wanted.hidden)
      result.hidden_ND.narrow(0, chunk.begin, chunk.count).copy_(at::mm(grad_CV, weight_VD));
    if (wanted.weight) products.add_product(result.weight_VD, grad_CV.t(), chunk.hidden_CD);
  });
  result.loss = sum.to(at::kFloat);
  return result;
}

at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& factor, at::ScalarType dtype) {
  return gradient.to(at::kFloat).mul(factor).to(dtype);
}

LabelLosses label_losses(const at::Tensor& hidden_ND, const OutputHead& head,
                         const at::Tensor& labels_N) {
  const LabelLosses result = empty_label_losses(hidden_ND);
  for_logit_chunks(hidden_ND, head, labels_N, {}, [&](LogitChunk& chunk) {
    const at::Tensor of_label_C = chunk.logits_CV.gather(1, chunk.labels_C.unsqueeze(1)).squeeze(1);
    result.nll_N.narrow(0, chunk.begin, chunk.count)
        .copy_(chunk.logits_CV.logsumexp({1}).sub_(of_label_C));
    result.correct_N.narrow(0, chunk.begin, chunk.count)
        .copy_(chunk.logits_CV.argmax(1).eq(chunk.labels_C));
  });
  return result;
}

}  // namespace

const CrossEntropyOps kCrossEntropyAten = {loss, scaled, label_losses, capped_by_ops};

}  // namespace convoy::kernels
