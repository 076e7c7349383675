// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/engine_defaults.h"

namespace convoy::scheduler {

EngineDefaults engine_defaults(Hardware hardware, int64_t gpu_bytes) {
  if (hardware == Hardware::Cpu) return {};
  // The KV cache gets nine tenths of the memory that is left; a step's activations get the rest.
  const int64_t gib = gpu_bytes >> 30;
  const int64_t step_tokens = gib >= 64 ? 8192 : gib >= 32 ? 4096 : 2048;
  return {.max_rows = 256, .step_tokens = step_tokens, .kv_share = 0.9, .rows_in_flight = 256};
}

}  // namespace convoy::scheduler
