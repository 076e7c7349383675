// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/memory_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "convoy/core/base/bytes_text.h"
#include "convoy/core/base/counted.h"

namespace convoy::scheduler {
namespace {

// The fewest tokens of a step: with fewer, reading all weights would do too little work.
constexpr int64_t kLeastStepTokens = 64;

struct Storage {
  bool int8_kv;
  bool int8_weights;
  bool int4_weights;
};

int64_t blocks_of(const MemoryNeeds& needs, int64_t tokens) {
  return (tokens + needs.block_tokens - 1) / needs.block_tokens;
}

int64_t bytes_without_kv(const MemoryNeeds& needs, const Storage& storage, int64_t rows,
                         int64_t step_tokens) {
  const int64_t weights = storage.int4_weights   ? needs.int4_weight_bytes
                          : storage.int8_weights ? needs.int8_weight_bytes
                                                 : needs.weight_bytes;
  return needs.program_bytes + weights + rows * needs.state_bytes_per_row +
         step_tokens * needs.step_bytes_per_token;
}

int64_t block_bytes(const MemoryNeeds& needs, const Storage& storage) {
  return needs.block_tokens *
         (storage.int8_kv ? needs.int8_kv_bytes_per_token : needs.kv_bytes_per_token);
}

// A plan for `rows` rows, with KV blocks for `full_rows` rows at their longest; nothing when it
// exceeds the budget.
std::optional<MemoryLadderPlan> fit(const MemoryNeeds& needs, const MemoryRequest& request,
                                    const Storage& storage, int64_t full_rows, int64_t rows,
                                    int64_t step_tokens) {
  MemoryLadderPlan plan;
  plan.rows = rows;
  plan.kv_blocks = full_rows * blocks_of(needs, request.row_tokens);
  plan.step_tokens = step_tokens;
  plan.int8_kv = storage.int8_kv;
  plan.int8_weights = storage.int8_weights;
  plan.int4_weights = storage.int4_weights;
  plan.bytes = bytes_without_kv(needs, storage, rows, step_tokens) +
               plan.kv_blocks * block_bytes(needs, storage);
  if (plan.bytes > request.budget_bytes) return std::nullopt;
  return plan;
}

// Spends the rest of the budget on more blocks, so that fewer rows are preempted and recomputed.
void spread(MemoryLadderPlan& plan, const MemoryNeeds& needs, const MemoryRequest& request,
            const Storage& storage) {
  const int64_t most = plan.rows * blocks_of(needs, request.row_tokens);
  const int64_t free = (request.budget_bytes - plan.bytes) / block_bytes(needs, storage);
  const int64_t added = std::clamp<int64_t>(most - plan.kv_blocks, 0, free);
  plan.kv_blocks += added;
  plan.bytes += added * block_bytes(needs, storage);
}

// Tries the upper three rungs with these types of storage.
std::optional<MemoryLadderPlan> fit_rows(const MemoryNeeds& needs, const MemoryRequest& request,
                                         const Storage& storage) {
  if (auto plan = fit(needs, request, storage, request.rows, request.rows, request.step_tokens)) {
    plan->rung = Rung::All;
    return plan;
  }
  // With half of the rows a step is still full. With fewer rows, preempting and recomputing is
  // faster.
  for (int64_t rows = request.rows - 1; rows >= std::max<int64_t>(1, (request.rows + 1) / 2);
       --rows) {
    if (auto plan = fit(needs, request, storage, rows, rows, request.step_tokens)) {
      plan->rung = Rung::FewerRows;
      return plan;
    }
  }
  // The blocks must suffice for one row of the greatest length; the other rows share the remaining
  // blocks.
  const int64_t rows = std::max<int64_t>(1, (request.rows + 1) / 2);
  for (int64_t step = request.step_tokens;; step = std::max(kLeastStepTokens, step / 2)) {
    if (auto plan = fit(needs, request, storage, 1, rows, step)) {
      plan->rung = Rung::Recompute;
      spread(*plan, needs, request, storage);
      return plan;
    }
    if (step <= kLeastStepTokens) return std::nullopt;
  }
}

}  // namespace

std::string_view rung_name(Rung rung) {
  switch (rung) {
    case Rung::All:
      return "all rows";
    case Rung::FewerRows:
      return "fewer rows";
    case Rung::Recompute:
      return "preempt and recompute";
    case Rung::Int8Kv:
      return "int8 KV";
    case Rung::Int8Weights:
      return "int8 weights";
    case Rung::Int4Weights:
      return "int4 weights";
    case Rung::None:
      break;
  }
  return "none";
}

std::string MemoryLadderPlan::text(int64_t budget_bytes) const {
  if (rung == Rung::None)
    return fmt::format("needs {} at least, the budget is {}", bytes_text(bytes),
                       bytes_text(budget_bytes));
  return fmt::format("{}: {}, {}, {} of {}", rung_name(rung), counted(rows, "row"),
                     counted(kv_blocks, "KV block"), bytes_text(bytes), bytes_text(budget_bytes));
}

MemoryLadderPlan climb_down(const MemoryNeeds& needs, const MemoryRequest& request) {
  Storage storage{request.int8_kv, request.int8_weights, request.int4_weights};
  if (auto plan = fit_rows(needs, request, storage)) return *plan;
  const auto lower = [&](Rung rung) -> std::optional<MemoryLadderPlan> {
    auto plan = fit_rows(needs, request, storage);
    if (plan) plan->rung = rung;
    return plan;
  };
  storage.int8_kv = true;
  if (!request.int8_kv)
    if (auto plan = lower(Rung::Int8Kv)) return *plan;
  if (!request.int8_weights && !request.int4_weights) {
    storage.int8_weights = true;
    if (auto plan = lower(Rung::Int8Weights)) return *plan;
    storage.int8_weights = false;
  }
  if (!request.int4_weights && !request.int8_weights) {
    storage.int4_weights = true;
    if (auto plan = lower(Rung::Int4Weights)) return *plan;
  }
  MemoryLadderPlan none;
  none.bytes =
      bytes_without_kv(needs, storage, 1, std::min(kLeastStepTokens, request.step_tokens)) +
      blocks_of(needs, request.row_tokens) * block_bytes(needs, storage);
  return none;
}

}  // namespace convoy::scheduler
