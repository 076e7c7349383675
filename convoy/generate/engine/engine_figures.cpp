// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/engine.h"

namespace convoy::generate {

void Engine::count(const std::vector<scheduler::PlannedRow>& plan, double seconds) {
  int64_t decoded = 0;
  int64_t all = 0;
  for (const scheduler::PlannedRow& planned : plan) {
    const int64_t tokens = planned.end - planned.begin;
    all += tokens;
    if (tokens == 1 && planned.draws) ++decoded;
  }
  const double share = static_cast<double>(decoded) / static_cast<double>(all);
  figures_.decode_tokens += decoded;
  figures_.prefill_tokens += all - decoded;
  figures_.decode_seconds += share * seconds;
  figures_.prefill_seconds += (1 - share) * seconds;
}

EngineFigures Engine::figures() const {
  const scheduler::SchedulerFigures scheduled = scheduler_.figures();
  EngineFigures figures = figures_;
  figures.running = scheduled.running;
  figures.waiting = scheduled.waiting;
  figures.kv_use = scheduled.num_blocks == 0 ? 0.0
                                             : static_cast<double>(scheduled.taken_blocks) /
                                                   static_cast<double>(scheduled.num_blocks);
  figures.cached_prompt_tokens = scheduled.cached_prompt_tokens;
  figures.sought_prompt_tokens = scheduled.sought_prompt_tokens;
  figures.preemptions = scheduled.preemptions;
  return figures;
}

}  // namespace convoy::generate
