// SPDX-License-Identifier: Apache-2.0
//
// Fits an engine into a memory budget. It takes the first of these rungs that fits: all rows at
// their longest; fewer rows at a time; rows that return their KV blocks and are computed again;
// int8 KV; int8 weights; int4 weights. Each rung costs speed, and the last two cost some quality. A
// pure function of its numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy::scheduler {

// Bytes of one engine's model, for each type of storage.
struct MemoryNeeds {
  int64_t program_bytes = 0;  // memory of the process before the model
  int64_t weight_bytes = 0;
  int64_t int8_weight_bytes = 0;
  int64_t int4_weight_bytes = 0;
  int64_t kv_bytes_per_token = 0;  // for all layers together
  int64_t int8_kv_bytes_per_token = 0;
  int64_t state_bytes_per_row = 0;   // for all layers with a recurrence together
  int64_t step_bytes_per_token = 0;  // activations and logits of one token of a step
  int64_t block_tokens = 16;
};

struct MemoryRequest {
  int64_t budget_bytes = 0;
  int64_t rows = 16;          // rows at a time
  int64_t row_tokens = 4096;  // the longest prompt and answer
  int64_t step_tokens = 512;  // in one forward pass
  // Choices of the user, which every rung keeps.
  bool int8_kv = false;
  bool int8_weights = false;
  bool int4_weights = false;
};

enum class Rung { All, FewerRows, Recompute, Int8Kv, Int8Weights, Int4Weights, None };
std::string_view rung_name(Rung rung);  // "all rows", "fewer rows", "preempt and recompute", ...

struct MemoryLadderPlan {
  Rung rung = Rung::None;  // None: not even the last rung fits
  int64_t rows = 0;        // rows at a time
  int64_t kv_blocks = 0;
  int64_t step_tokens = 0;
  bool int8_kv = false;
  bool int8_weights = false;
  bool int4_weights = false;
  int64_t bytes = 0;  // bytes of the plan; with Rung::None, bytes of the last rung
  // "int8 KV: 8 rows, 2048 KV blocks, 11.20 GiB of 12.00 GiB".
  std::string text(int64_t budget_bytes) const;
};

MemoryLadderPlan climb_down(const MemoryNeeds& needs, const MemoryRequest& request);

}  // namespace convoy::scheduler
