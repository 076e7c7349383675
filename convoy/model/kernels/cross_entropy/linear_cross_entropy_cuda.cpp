// SPDX-License-Identifier: Apache-2.0
//
// Chunks of rows as in linear_cross_entropy_aten.cpp; between the products one kernel makes losses
// and gradients, in the memory of the logits. A soft cap and a temperature are applied before by
// LibTorch's ops; the kernel multiplies the gradients by the cap's slope and by weights, which hold
// the factor of the temperature.
#include "convoy/model/kernels/cross_entropy/head_products.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_launch.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_ops.h"
#include "convoy/model/kernels/cuda/launch.h"

namespace convoy::kernels {
namespace {

gpu::CrossEntropyLaunch launch_of(const LogitChunk& chunk, const at::Tensor& nll_N) {
  const int64_t vocab = chunk.logits_CV.size(1);
  return {.logits = chunk.logits_CV.mutable_data_ptr<float>(),
          .labels = chunk.labels_C.const_data_ptr<int64_t>(),
          .nll = nll_N.mutable_data_ptr<float>() + chunk.begin,
          .rows = static_cast<uint64_t>(chunk.count),
          .vocab = static_cast<uint64_t>(vocab),
          .vectors = vocab % gpu::kLogitsTogether == 0 && fits_vectors({chunk.logits_CV}, vocab)};
}

// The logits are read twice, and the gradients written over them.
PartlyMoved moved_for_gradients(const at::Tensor& logits_CV, at::ScalarType type) {
  const auto written = static_cast<int64_t>(c10::elementSize(type)) * logits_CV.numel();
  return {{logits_CV.const_data_ptr(), 2 * static_cast<int64_t>(logits_CV.nbytes()) + written}};
}

// The weights of the tokens' gradients; undefined: 1 for all.
at::Tensor gradient_weights(const OutputHead& head, const HeadTargets& targets) {
  if (head.form.temperature == 1) return targets.weights_N;
  if (targets.weights_N.defined()) return targets.weights_N.mul(head.logit_factor());
  return at::full(targets.labels_N.sizes(), head.logit_factor(),
                  targets.labels_N.options().dtype(at::kFloat));
}

// The gradients in the memory of the logits, as a matrix of `type`.
at::Tensor gradients_in(const at::Tensor& logits_CV, at::ScalarType type) {
  return type == at::kFloat ? logits_CV : logits_CV.view(type).narrow(1, 0, logits_CV.size(1));
}

HeadLoss loss(const at::Tensor& hidden_ND, const OutputHead& head, const HeadTargets& targets,
              WantedGradients wanted) {
  const at::Tensor& weight_VD = head.weight_VD;
  const WideProducts& products = wide_products(hidden_ND);
  const at::ScalarType type = hidden_ND.scalar_type();
  HeadLoss result = head_loss_to_add(hidden_ND, weight_VD, wanted);
  const at::Tensor nll_N = at::empty({hidden_ND.size(0)}, hidden_ND.options().dtype(at::kFloat));
  const at::Tensor weights_N = gradient_weights(head, targets);
  const bool differentiates = wanted.hidden || wanted.weight;
  const std::string kernel =
      differentiates ? kernel_name("cross_entropy_gradient", type) : "label_losses";
  for_logit_chunks(hidden_ND, head, targets.labels_N, wanted, [&](LogitChunk& chunk) {
    gpu::CrossEntropyLaunch launched = launch_of(chunk, nll_N);
    if (weights_N.defined()) launched.weights = weights_N.const_data_ptr<float>() + chunk.begin;
    if (head.form.cap > 0) launched.inverse_cap = 1.0f / head.bound();
    launch(chunk.logits_CV, kernel, static_cast<uint64_t>(chunk.count), launched,
           differentiates ? moved_for_gradients(chunk.logits_CV, type) : PartlyMoved{});
    const at::Tensor grad_CV = gradients_in(chunk.logits_CV, type);
    if (wanted.hidden) {
      at::Tensor grad_hidden_CD = result.hidden_ND.narrow(0, chunk.begin, chunk.count);
      at::mm_out(grad_hidden_CD, grad_CV, weight_VD);
    }
    if (wanted.weight) products.add_product(result.weight_VD, grad_CV.t(), chunk.hidden_CD);
  });
  result.loss = (targets.weights_N.defined() ? nll_N.mul(targets.weights_N) : nll_N)
                    .sum(at::kDouble)
                    .to(at::kFloat);
  return result;
}

at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& factor, at::ScalarType dtype) {
  at::Tensor result = at::empty(gradient.sizes(), gradient.options().dtype(dtype));
  if (gradient.numel() == 0) return result;
  const bool vectors = vectors_of({gradient}) > 0 && vectors_of({result}) > 0;
  const gpu::ScaleLaunch launched = {
      .from = gradient.const_data_ptr(),
      .to = result.mutable_data_ptr(),
      .factor = factor.const_data_ptr<float>(),
      .count = static_cast<uint64_t>(gradient.numel()),
      .num_vectors =
          vectors ? static_cast<uint64_t>(gradient.numel() / gpu::kLogitsTogether) : uint64_t{0}};
  launch(gradient, kernel_name(kernel_name("scale", gradient.scalar_type()) + "_to", dtype),
         blocks_for_elements(gradient.numel(), gpu::kLogitsTogether), launched);
  return result;
}

LabelLosses label_losses(const at::Tensor& hidden_ND, const OutputHead& head,
                         const at::Tensor& labels_N) {
  const LabelLosses result = empty_label_losses(hidden_ND);
  for_logit_chunks(hidden_ND, head, labels_N, {}, [&](LogitChunk& chunk) {
    gpu::CrossEntropyLaunch launched = launch_of(chunk, result.nll_N);
    launched.correct =
        reinterpret_cast<uint8_t*>(result.correct_N.mutable_data_ptr<bool>()) + chunk.begin;
    launch(chunk.logits_CV, "label_losses", static_cast<uint64_t>(chunk.count), launched);
  });
  return result;
}

}  // namespace

const CrossEntropyOps kCrossEntropyCuda = {loss, scaled, label_losses, capped_by_ops};

}  // namespace convoy::kernels
