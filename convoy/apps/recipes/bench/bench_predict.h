// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench predict`: what a step of generation or of training would take of a GPU. The
// program's own step runs on the counting device (machine/counting), with the sizes of a
// config.json and no weights.
#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/apps/recipes/bench/predicted_step.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Predicts one step and returns an object with these keys:
//   - The step: "tool","device","step" ("decode", "prefill" or "train"),"rows","dtype", and
//     "context" (decode) or "tokens" (other steps).
//   - Settings of generation: "weights","kv_dtype".
//   - Settings of training: "mode","recompute","attention","optimizer_state_dtype",
//     "master_weights","ranks","strategy".
//   - Counts: "launches","uploads","downloads","host_waits","host_ops","cuda_graph".
//   - Bytes: "weight_bytes","other_bytes"; of generation also
//     "least_weight_bytes","kv_bytes","least_kv_bytes"; of training also "state_bytes",
//     "peak_memory_bytes" (of tensors),"planned_memory_bytes","device_memory_bytes".
//   - Traffic that each of several ranks sends: "link_bytes","link_ms","exposed_ms", and by name
//     "collectives": "op","calls","link_bytes","link_ms".
//   - Work and time: "flops","least_flops","host_ms","device_ms","predicted_ms","roofline_ms",
//     "roofline_share","tokens_per_s","mfu" (least_flops as a share of the peak).
//   - By name "ops": "op","calls","launches","bytes","device_ms","share".
//   - By shape, the longest "products": "op","batch","rows","inner","columns","calls","flops",
//     "device_ms".
//   - "assumed": the assumed properties of the GPU.
// With flags.measure, on one rank and with `devices` "cuda", also measures the step: "measured_ms",
// and in "ops" "measured_device_ms". The counting device stays installed in the process. Throws
// ConfigError, DataError.
nlohmann::ordered_json bench_predict(const settings::BenchPredictFlags& flags,
                                     const std::string& devices);

// Measures the same step on a real device, with random weights.
MeasuredStep measure_step(const settings::BenchPredictFlags& flags, at::Device device);

}  // namespace convoy::recipes
