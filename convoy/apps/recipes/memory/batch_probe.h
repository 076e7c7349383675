// SPDX-License-Identifier: Apache-2.0
//
// Runs training steps without effect to measure their memory: the run's own forward and backward
// passes, reductions and optimizer, with zero gradients and a learning rate of zero.
#pragma once

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
  };
  // All parts must outlive it.
  explicit BatchProbe(const Parts& parts) : parts_(parts) {}

  using Rows = std::vector<data::EncodedRow>;
  // Collective. Blocks. Returns the peaks, by rank, of several successive steps; the micro-batches
  // of each step have the given rows. One step is not enough: memory blocks that one step leaves
  // are slightly too small for the next, so a run takes more than its largest step. Empty when a
  // single rank ran out of memory; several ranks throw.
  std::optional<std::vector<device::PeakMemory>> measure(const std::vector<Rows>& steps);

 private:
  bool step(const Rows& rows);
  void pass(const Rows& rows);

  const Parts parts_;
  bool has_stepped_ = false;
};

}  // namespace convoy::recipes
