// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench peak`: measures the speed of matrix products on this machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::recipes {

// Measures fp32 and bf16 on "cpu" or "cuda" (one GPU), some seconds each. Saves the result for
// trainings unless the user chose the number of threads. Returns {"bench": "peak",
// "device", "peaks": [{"dtype", "flops_per_second", "by"}], "file"}. Throws DeviceError, IoError.
nlohmann::ordered_json measure_peak(const std::string& devices, const Log& log);

}  // namespace convoy::recipes
