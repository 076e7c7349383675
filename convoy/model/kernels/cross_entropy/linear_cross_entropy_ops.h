// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for linear_cross_entropy: N supervised tokens, all labels
// in the vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

namespace convoy::kernels {

struct WantedGradients {
  bool hidden = false;
  bool weight = false;
};

struct OutputHead {
  at::Tensor weight_VD;
  LogitForm form = {};

  float logit_factor() const { return kernels::logit_factor(form.temperature); }
  // The bound of the logits that a soft cap gives. Its slope at a logit z is 1 - (z / bound)^2.
  float bound() const { return static_cast<float>(form.cap) * logit_factor(); }
};

struct HeadTargets {
  at::Tensor labels_N;
  at::Tensor weights_N;  // fp32 weights of the tokens' losses; undefined: 1 for all
};

struct HeadLoss {
  at::Tensor loss;       // fp32 scalar on the device
  at::Tensor hidden_ND;  // gradients; undefined unless requested
  at::Tensor weight_VD;  // fp32
};

struct LabelLosses {
  at::Tensor nll_N;      // fp32
  at::Tensor correct_N;  // bool
};

struct CrossEntropyOps {
  HeadLoss (*loss)(const at::Tensor& hidden_ND, const OutputHead& head, const HeadTargets& targets,
                   WantedGradients wanted);
  // factor (a scalar on the device) * gradient, of `dtype`. The product is rounded once: a factor
  // rounded to the type of a bf16 gradient would bias every gradient.
  at::Tensor (*scaled)(const at::Tensor& gradient, const at::Tensor& factor, at::ScalarType dtype);
  LabelLosses (*label_losses)(const at::Tensor& hidden_ND, const OutputHead& head,
                              const at::Tensor& labels_N);
  // capped_logits() for a cap above 0.
  at::Tensor (*capped_logits)(const at::Tensor& logits, double logit_cap);
};

const CrossEntropyOps& cross_entropy_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const CrossEntropyOps kCrossEntropyCpu;
extern const CrossEntropyOps kCrossEntropyAten;  // any device
extern const CrossEntropyOps kCrossEntropyCuda;

}  // namespace convoy::kernels
