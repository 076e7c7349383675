// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench train`: tokens/s of a training step on random tokens and weights, the work of bench/peers/hf_train.py.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/settings/command_flags.h"

namespace convoy::recipes {

// {"tool","mode","dtype","geometry","seq","batch","recompute","tokens_per_s" (median),"best",
// "flops_per_token","loss"} and bench_memory(). `devices`: as for device::place_rank. Throws
// DeviceError.
nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags,
                                   const std::string& devices);

}  // namespace convoy::recipes
