// SPDX-License-Identifier: Apache-2.0
//
// FLOPs of a model's step (model/sizing/step_flops.h), and of the devices of all ranks.
#pragma once

#include <string>

#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/sizing/step_flops.h"
#include "convoy/train/loop/step_batches.h"

namespace convoy::recipes {

// The attention and the recurrences of a model, for FLOP counts.
sizing::AttentionShape attention_shape(const nn::CausalLm& model);

// `lora`: the adapter that is trained beside the model's frozen weights; null: the model itself is
// trained.
train::StepFlops step_flops_of(nn::CausalLm& model, const adapters::LoraModel* lora);

// Measured peak of one rank of a job on this rank's host, in FLOP/s; 0 = not measured there. On a
// CPU the `local_world` ranks of a host share it.
double known_peak_of_rank(const std::string& device_kind, const std::string& dtype,
                          int local_world);

// "41 % of the measured peak (460 GFLOP/s in bf16)".
std::string peak_share_text(double share, double peak_flops, const std::string& dtype);

}  // namespace convoy::recipes
