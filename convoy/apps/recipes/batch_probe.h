// SPDX-License-Identifier: Apache-2.0
//
// Steps of a training that change nothing, to see what memory they take: the forward and backward
// passes, sums over ranks and optimizer of the run itself, with gradients of zero and a rate of
// zero.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/data/datasets/token_dataset.h"
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
    bool recompute_blocks = false;
    bool accumulates = false;  // a step has two micro-batches
  };
  // All parts outlive it.
  explicit BatchProbe(const Parts& parts) : parts_(parts) {}

  using Rows = std::vector<data::EncodedRow>;
  // Collective. Blocks. The peaks, by rank, of steps one after another, each of whose micro-batches
  // has the rows of its turn. Not of one step alone: blocks of memory that one leaves are a little
  // too large for the next, and a run takes more than its largest step. None where a single rank
  // ran out of memory; several throw.
  std::optional<std::vector<device::PeakMemory>> measure(const std::vector<Rows>& steps);

 private:
  bool step(const Rows& rows);
  void pass(const Rows& rows);

  const Parts parts_;
  bool has_stepped_ = false;
};

}  // namespace convoy::recipes
