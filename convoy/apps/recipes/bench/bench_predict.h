// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench predict`: what a step of generation would take of a GPU. The engine's own step runs
// on the counting device (machine/counting), with the sizes of a config.json and no weights.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// {"tool","device","step" ("decode" or "prefill"),"rows","context" (of a prefill:
// "tokens"),"dtype","weights", "kv_dtype",
// "launches","uploads","downloads","host_waits","host_ops", bytes:
// "weight_bytes","least_weight_bytes", "kv_bytes","least_kv_bytes","other_bytes",
// "flops","host_ms","device_ms","predicted_ms","roofline_ms", "roofline_share","tokens_per_s","ops"
// (of one name: "op","calls","launches","bytes","device_ms","share"),"assumed"} and, with
// flags.measure where `devices` is "cuda", {"measured_ms"} and in "ops" {"measured_device_ms"}.
// The process has the counting device from then on. Throws ConfigError, DataError.
nlohmann::ordered_json bench_predict(const settings::BenchPredictFlags& flags,
                                     const std::string& devices);

struct MeasuredStep {
  double seconds = 0;                                // median
  std::map<std::string, double> seconds_by_op = {};  // measure_ops() of one more step
};

// The same step on a device that computes, over random weights.
MeasuredStep measure_step(const settings::BenchPredictFlags& flags, at::Device device);

}  // namespace convoy::recipes
