// SPDX-License-Identifier: Apache-2.0
//
// One rank's micro-batches of a run, in the order of its steps, prepared while earlier ones train.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/loop/made_ahead.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

struct MicroBatch {
  MicroBatchPosition place;
  LabelledBatch batch;             // empty if the rank has no rows for it
  std::vector<int64_t> rows = {};  // numbers in the data set, in the order of the batch
};

// StepTotals::flops of a step whose rows have these tokens.
using StepFlops =
    std::function<double(const std::vector<int64_t>& row_tokens, int64_t supervised_tokens)>;

class StepBatches {
 public:
  // `plan` outlives it. `flops` may be empty. Batches lie on `device`, written on the stream that
  // is current in this thread: work on that stream comes after them.
  StepBatches(const data::BatchPlan& plan, int64_t rank, at::Device device, StepRange steps,
              const StepFlops& flops = {});

  // The next micro-batch: grad_accum of each step. Blocks until it is prepared. Throws what
  // preparing it threw.
  MicroBatch take() { return batches_.take(); }

 private:
  MadeAhead<MicroBatch> batches_;
};

}  // namespace convoy::train
