// SPDX-License-Identifier: Apache-2.0
//
// The sampling settings of a solution.
#pragma once

#include <cstdint>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/text_engine.h"

namespace convoy::process {

inline TextSampling text_sampling(const settings::DrawSettings& settings, double temperature,
                                  int64_t max_new_tokens) {
  return {.temperature = temperature,
          .top_k = settings.top_k,
          .top_p = settings.top_p,
          .min_p = settings.min_p,
          .repetition_penalty = settings.repetition_penalty,
          .max_new_tokens = max_new_tokens,
          .stop = settings.stop.names};
}

}  // namespace convoy::process
