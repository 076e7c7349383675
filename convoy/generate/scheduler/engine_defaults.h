// SPDX-License-Identifier: Apache-2.0
//
// The default size of an engine: on a GPU it fills the memory, on a CPU it leaves memory to the
// host.
#pragma once

#include <cstdint>

namespace convoy::scheduler {

enum class Hardware { Cpu, Gpu };

struct EngineDefaults {
  int64_t max_rows = 16;
  int64_t step_tokens = 512;
  double kv_share = 0.5;        // share of the memory left after the weights, for keys and values
  int64_t rows_in_flight = 64;  // rows that a worker with other work besides generation holds
};

// `gpu_bytes`: memory of the whole GPU; 0 = unknown.
EngineDefaults engine_defaults(Hardware hardware, int64_t gpu_bytes = 0);

}  // namespace convoy::scheduler
