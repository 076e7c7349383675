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

// {"tool","device","step" ("decode", "prefill" or "train"),"rows","context" (of decode) or
// "tokens","dtype", of generation "weights" and "kv_dtype", of a training
// "mode","recompute","ranks","strategy";
// "launches","uploads","downloads","host_waits","host_ops"; bytes: "weight_bytes","other_bytes", of
// generation "least_weight_bytes","kv_bytes","least_kv_bytes", of a training "state_bytes",
// "peak_memory_bytes" (of tensors at a time),"planned_memory_bytes","device_memory_bytes", of
// several ranks what each sends: "link_bytes","link_ms","exposed_ms","collectives" (of one name:
// "op","calls","link_bytes","link_ms");
// "flops","least_flops","host_ms","device_ms","predicted_ms","roofline_ms","roofline_share",
// "tokens_per_s","mfu" (least_flops as a share of the peak),"ops" (of one name:
// "op","calls","launches","bytes","device_ms","share"),"products" (of one shape:
// "op","batch","rows","inner","columns","calls","flops","device_ms"; the longest),"assumed"} and,
// with flags.measure where `devices` is "cuda", {"measured_ms"} and in "ops"
// {"measured_device_ms"}. The process has the counting device from then on. Throws ConfigError,
// DataError.
nlohmann::ordered_json bench_predict(const settings::BenchPredictFlags& flags,
                                     const std::string& devices);

// The same step on a device that computes, over random weights.
MeasuredStep measure_step(const settings::BenchPredictFlags& flags, at::Device device);

}  // namespace convoy::recipes
