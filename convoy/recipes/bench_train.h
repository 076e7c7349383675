// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench train`: tokens/s of a training step on random tokens and weights, the work of bench/peers/hf_train.py.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/settings/command_flags.h"

namespace convoy::recipes {

// {"tool","mode","dtype","geometry","seq","batch","tokens_per_s" (median),"best","peak_rss_mb","loss"}.
nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags);

}  // namespace convoy::recipes
