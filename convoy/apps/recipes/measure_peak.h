// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench peak`: measures the speed of matrix products on this machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::recipes {

// Measures fp32 and bf16 on "cpu" (with `threads`; 0 = usable CPUs) or "cuda" (one GPU), some
// seconds each. Saves the result for trainings when all CPUs were used. Returns {"bench": "peak",
// "device", "peaks": [{"dtype", "flops_per_second", "by"}], "file"}. Throws DeviceError, IoError.
nlohmann::ordered_json measure_peak(const std::string& devices, int64_t threads, const Log& log);

}  // namespace convoy::recipes
