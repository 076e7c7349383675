// SPDX-License-Identifier: Apache-2.0
//
// Classes of sensor windows: cross-entropy with smoothed labels, every window weighed alike over
// the global batch.
#pragma once

#include <functional>
#include <optional>

#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/data/datasets/signals/signal_windows.h"
#include "convoy/data/evaluate/classification.h"
#include "convoy/model/nn/signal_classifier.h"
#include "convoy/train/loop/epoch_history.h"
#include "convoy/train/loop/made_ahead.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

struct ClassifyOptions {
  double label_smoothing = 0;
  bool bf16 = false;
  int64_t eval_batch_size = 1;  // windows
};

struct WindowFigures {
  double loss_sum = 0;  // over windows, of smoothed labels
  evaluate::ConfusionMatrix confusion;
  double seconds = 0;

  double loss() const { return loss_sum / static_cast<double>(confusion.total()); }
};

// Collective. Blocks. Windows are dealt round robin to ranks and summed in their order, so the
// figures are the same on every rank and for every number of ranks. Returns none when
// `stop_requested` (may be empty) was true on some rank.
std::optional<WindowFigures> evaluate_windows(const nn::SignalClassifier& model,
                                              const data::SignalWindows& windows,
                                              const ClassifyOptions& options, comm::Group& group,
                                              const std::function<bool()>& stop_requested = {});

class ClassifyObjective : public TrainingObjective {
 public:
  // Called at the end of each epoch.
  using EpochListener = std::function<void(const EpochRecord&)>;

  // All but the options outlive it. `validation` may have no windows.
  ClassifyObjective(const nn::SignalClassifier& model, const data::SignalWindows& windows,
                    const data::EpochOrder& order, const data::SignalWindows& validation,
                    const ClassifyOptions& options, EpochListener listener = {});

  // Called before begin(), with the history that memory() returned.
  void remember(EpochHistory history) { history_ = std::move(history); }
  const EpochHistory& history() const { return history_; }

  int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  int64_t micro_batches_per_step() const override { return order_.config().grad_accum; }
  void begin(StepRange steps, int rank) override;
  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  bool has_validation() const override { return validation_.num_windows > 0; }
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override;
  nn::Residency* residency() const override { return model_.residency(); }
  at::Device device() const override { return model_.device(); }
  void step_done(const StepOutcome& step) override { history_.add(step); }
  void epoch_done(int64_t epochs, const std::optional<Evaluation>& evaluation) override;
  io::Json memory() const override { return history_.to_json(); }

 private:
  struct Batch {
    MicroBatchPosition place;
    at::Tensor x_NLC;
    at::Tensor classes_N;
  };
  Batch prepare(data::StepPosition position, int64_t number, int rank) const;

  const nn::SignalClassifier& model_;
  const data::SignalWindows& windows_;
  const data::EpochOrder& order_;
  const data::SignalWindows& validation_;
  ClassifyOptions options_;
  EpochListener listener_;
  EpochHistory history_;
  Batch batch_;                              // the batch taken last
  std::optional<MadeAhead<Batch>> batches_;  // last: its thread uses all of the above
};

}  // namespace convoy::train
