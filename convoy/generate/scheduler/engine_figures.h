// SPDX-License-Identifier: Apache-2.0
//
// Counters and current load of a generation engine. Plain data.
#pragma once

#include <cstdint>

namespace convoy::scheduler {

// running, waiting and kv_use show the present state; the others count since the engine was made.
struct EngineFigures {
  int64_t running = 0;  // running requests
  int64_t waiting = 0;
  double kv_use = 0;  // share of the KV blocks that rows hold
  int64_t prefill_tokens = 0;
  int64_t cached_prompt_tokens = 0;  // tokens taken from a shared prefix, not computed
  int64_t sought_prompt_tokens = 0;  // tokens for which a shared prefix was sought
  int64_t decode_tokens = 0;
  int64_t preemptions = 0;
  int64_t recorded_steps = 0;  // steps started as a whole (EngineConfig::records_steps)
  double prefill_seconds = 0;  // a mixed step counts in part, by its tokens
  double decode_seconds = 0;
};

}  // namespace convoy::scheduler
