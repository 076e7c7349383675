// SPDX-License-Identifier: Apache-2.0
//
// Runs training steps without effect to measure their memory and speed: the run's own forward and
// backward passes, reductions and optimizer, with zero gradients and a learning rate of zero.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/machine/device/peak_meter.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

class BatchProbe {
 public:
  struct Parts {
    nn::CausalLm& model;
    parallel::Strategy& strategy;
    optim::AdamW& optimizer;  // without moments yet; it counts the steps
    nn::Recompute recompute = nn::Recompute::Nothing;
    bool accumulates = false;  // a step has two micro-batches
    const std::atomic<bool>& stop_requested;
  };
  // All parts must outlive it.
  explicit BatchProbe(const Parts& parts) : parts_(parts) {}

  using Rows = std::vector<data::EncodedRow>;
  struct Measured {
    std::vector<device::PeakMemory> peaks = {};  // by rank
    double tokens_per_second = 0;                // by all ranks, in the last step
  };
  // Collective. Blocks. Measures several successive steps; the micro-batches of each step have the
  // given rows. One step is not enough: memory blocks that one step leaves are slightly too small
  // for the next, so a run takes more than its largest step. Returns nothing when a job of a single
  // rank ran out of memory (several ranks throw), and when a stop was requested on any rank. Stop
  // requests are checked before each micro-batch: after a stop the strategy is within a step and
  // cannot be used any more.
  std::optional<Measured> measure(const std::vector<Rows>& steps);

  // Collective.
  bool anyone_stops() { return parts_.strategy.group().any(parts_.stop_requested.load()); }

 private:
  bool step(const Rows& rows);
  bool pass(const Rows& rows);
  int64_t micro_batches() const { return parts_.accumulates ? 2 : 1; }

  const Parts parts_;
  bool has_stepped_ = false;
};

}  // namespace convoy::recipes
