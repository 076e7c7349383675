// SPDX-License-Identifier: Apache-2.0
//
// Divergences of a model's distribution of the next token from a teacher's
// (settings/distill_settings.h), from the logits of both, with their gradient. Shapes: C tokens, V
// vocabulary. No call waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/core/settings/distill_settings.h"

namespace convoy::objectives {

struct Divergences {
  at::Tensor divergence_C;  // in the type of the logits
  at::Tensor entropy_C;     // the model's, over the whole vocabulary
  // Gradient of the sum of `divergence_C` in the model's logits; undefined unless wanted.
  at::Tensor gradient_CV;
};

// `model_CV`, `teacher_CV`: logits of the same V tokens, fp32 or fp64. With top_k the divergence is
// that of the distributions over the teacher's top_k tokens and one token for all others: never
// above that over the whole vocabulary, and equal to it where top_k is V.
Divergences divergences(const settings::DistillSettings& settings, const at::Tensor& model_CV,
                        const at::Tensor& teacher_CV, bool wants_gradient);

// The part of a teacher's distributions at C tokens that is known: its K likeliest tokens, fewer
// than V.
struct TopTokens {
  at::Tensor ids_CK;       // int64
  at::Tensor logprobs_CB;  // K + 1: of these tokens, then of all others together; finite
};

// As divergences() with a top_k of K, from the teacher's distribution itself: the settings'
// temperature is 1.
Divergences divergences_of_top(const settings::DistillSettings& settings,
                               const at::Tensor& model_CV, const TopTokens& teacher,
                               bool wants_gradient);

}  // namespace convoy::objectives
