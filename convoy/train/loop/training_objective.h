// SPDX-License-Identifier: Apache-2.0
//
// The objective of the training loop: its batches, its loss, its evaluation. An objective uses its
// model and its data; it uses no optimizer and no checkpoint, and of ranks only its own number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"
#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/comm/group.h"

namespace convoy::train {

// Totals of the global batch of a step: all micro-batches of all ranks.
struct StepTotals {
  int64_t rows = 0;
  int64_t tokens = 0;             // 0 where rows have none
  int64_t supervised_tokens = 0;  // 0 where rows have none
  // Divides the step's sum of losses. 0: nothing of the step is learnt, and it changes no weight.
  double weight = 0;
  double flops = -1;  // operations of the model's products, over all ranks; below 0 = not counted
};

// One micro-batch of this rank, without its content.
struct MicroBatchPosition {
  data::StepPosition position;
  int64_t number = 0;  // within the step, of this rank
  StepTotals step;
  bool has_rows = true;
};

// Steps counted from the start of the run.
struct StepRange {
  int64_t first = 0;
  int64_t end = 0;
};

// Options of a forward pass of training.
struct PassOptions {
  nn::DrawKey draw_key = {};  // random numbers are drawn from it; empty: none are
  nn::Recompute recompute = nn::Recompute::Nothing;
  bool keeps_inputs_on_host = false;  // inputs of recomputed blocks wait on the host
  double noise_alpha = 0;             // NEFTune; 0 = none
  double temperature = 1;             // the logits' own, where log-probabilities are learnt
};

struct MicroBatchLoss {
  at::Tensor sum;   // over the micro-batch, not divided; differentiable
  at::Tensor hits;  // number of rows answered rightly, int64; undefined: not counted
  // Sums of further figures over the micro-batch, fp64, the same number in each; undefined: none.
  at::Tensor figures = {};
};

// The result of an evaluation, the same on every rank.
struct Evaluation {
  double loss = 0;
  int64_t rows = 0;
  int64_t batches = 0;
  int64_t supervised_tokens = 0;
  double seconds = 0;
  std::map<std::string, double> others = {};  // further figures, by name
};

// The result of a step. Only the seconds differ between ranks.
struct StepOutcome {
  double loss = 0;
  int64_t rows = 0;
  int64_t hits = 0;  // rows answered right, if the objective counts them
  double learning_rate = 0;
  double seconds = 0;  // time that this rank took
};

class TrainingObjective {
 public:
  virtual ~TrainingObjective() = default;

  // The number of steps, which is the same for every epoch.
  virtual int64_t steps_per_epoch() const = 0;
  virtual int64_t micro_batches_per_step() const = 0;

  // Prepares this rank's micro-batches of these steps from here on, while earlier ones train.
  virtual void begin(StepRange steps, int rank) = 0;
  // The next micro-batch, in the order of the steps: micro_batches_per_step() of each. Blocks until
  // it is prepared. loss() uses it until the next call. Throws what preparing it threw; before the
  // first micro-batch of a step StopRequest on every rank, which ends the run as stopped.
  virtual MicroBatchPosition take() = 0;
  // The loss of the micro-batch from take(). Without rows it is a value that adds nothing to the
  // sum, for strategies that need every rank in every pass.
  virtual MicroBatchLoss loss(const PassOptions& options) = 0;
  // The number of MicroBatchLoss::figures, and the named figures that a step records from their
  // sums over its global batch.
  virtual int64_t num_figures() const { return 0; }
  virtual std::map<std::string, double> step_figures(const std::vector<double>& /*sums*/) const {
    return {};
  }

  virtual bool has_validation() const = 0;
  // Collective. Blocks. `stop_requested` is called between batches: when it is true on any rank,
  // every rank returns none, within about a second.
  virtual std::optional<Evaluation> evaluate(comm::Group& group,
                                             const std::function<bool()>& stop_requested) = 0;

  // The object to notify of the use of its model's units; null: none.
  virtual nn::Residency* residency() const = 0;
  virtual at::Device device() const = 0;

  // The objective's own state of a run, kept in checkpoints beside the model. step_done() is called
  // after every step; epoch_done() is called at the end of every epoch, after its evaluation where
  // one was due.
  virtual void step_done(const StepOutcome&) {}
  virtual void epoch_done(int64_t /*epochs*/, const std::optional<Evaluation>&) {}
  virtual io::Json memory() const { return io::Json::object(); }
};

}  // namespace convoy::train
