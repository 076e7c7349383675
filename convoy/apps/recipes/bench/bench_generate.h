// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench generate`: new tokens/s for a batch of prompts, the same work as
// bench/peers/hf_generate.py.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/core/settings/command_flags.h"

namespace convoy::recipes {

// Returns {"tool","dtype","geometry","prompt_tokens","new_tokens","points"} and bench_memory(); a
// point is {"batch","sampling","prompts","tokens","tokens_per_s" (median),"best"} with sampling
// "greedy" or "top_p". Rows generate different numbers of tokens, and only those count.
nlohmann::ordered_json bench_generate(const settings::BenchFlags& common,
                                      const settings::BenchGenerateFlags& flags,
                                      const std::string& devices);

}  // namespace convoy::recipes
