// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench train`: tokens/s of a training step on random tokens and weights, the same work as
// bench/peers/hf_train.py; with several ranks under a strategy.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Returns on the leading rank
// {"tool","mode","dtype","geometry","seq","batch","global_batch","grad_accum",
// "ranks","strategy","recompute","tokens_per_s" (of all ranks, median),"best",
// "communication_share" (time blocked in collectives, mean of ranks),"flops_per_token","loss"}, the
// largest bench_memory() of a rank and the planned memory ("planned_mb"); null on other ranks.
// Collective. Throws DeviceError, ConfigError.
nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags,
                                   const settings::RankFlags& ranks, const Log& log);

}  // namespace convoy::recipes
