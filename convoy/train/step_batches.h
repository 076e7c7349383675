// SPDX-License-Identifier: Apache-2.0
//
// One rank's micro-batches of a run, in the order of its steps, prepared while earlier ones train.
#pragma once

#include <cstdint>

#include "convoy/data/batch_plan.h"
#include "convoy/train/made_ahead.h"
#include "convoy/train/token_batch.h"

namespace convoy::train {

// Of the global batch of a step: all micro-batches of all ranks.
struct StepTotals {
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t supervised_tokens = 0;
};

struct MicroBatch {
  data::StepPosition position;
  int64_t number = 0;  // within the step, of this rank
  StepTotals step;
  LabelledBatch batch;  // of no tokens where the rank has no rows for it
};

// Steps counted from the start of the run.
struct StepRange {
  int64_t first = 0;
  int64_t end = 0;
};

class StepBatches {
 public:
  // `plan` outlives it. Batches lie on `device`, written on the stream that is current in this
  // thread: work on that stream comes after them.
  StepBatches(const data::BatchPlan& plan, int64_t rank, at::Device device, StepRange steps);

  // The next one: grad_accum of each step. Blocks until it is prepared. Throws what preparing it
  // threw.
  MicroBatch take() { return batches_.take(); }

 private:
  MadeAhead<MicroBatch> batches_;
};

}  // namespace convoy::train
