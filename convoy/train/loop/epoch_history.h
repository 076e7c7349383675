// SPDX-License-Identifier: Apache-2.0
//
// The results of each epoch of a run. Every rank keeps the same results except for times.
// Checkpoints contain them, so that a run that is resumed within an epoch has the figures of the
// whole epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

struct EpochRecord {
  int64_t epoch = 0;  // 1-based
  double train_loss = 0;
  double train_accuracy = 0;
  double learning_rate = 0;             // at the epoch's last step
  std::optional<double> val_loss = {};  // none: not evaluated
  std::optional<double> val_accuracy = {};
};

class EpochHistory {
 public:
  void add(const StepOutcome& step);
  // Ends the epoch and returns its record, which epochs() contains from now on.
  const EpochRecord& close(int64_t epoch, const std::optional<Evaluation>& evaluation);
  const std::vector<EpochRecord>& epochs() const { return epochs_; }
  // Rows of all steps so far, divided by the time of those steps. Steps of earlier processes count.
  double samples_per_second() const;

  io::Json to_json() const;
  // Throws DataError naming `place`.
  static EpochHistory from_json(const io::Json& json, const std::string& place);

 private:
  std::vector<EpochRecord> epochs_;
  // Sums over the current epoch.
  double loss_sum_ = 0;  // over rows
  int64_t rows_ = 0;
  int64_t hits_ = 0;
  double learning_rate_ = 0;
  // Sums over the whole run.
  int64_t total_rows_ = 0;
  double total_seconds_ = 0;
};

}  // namespace convoy::train
