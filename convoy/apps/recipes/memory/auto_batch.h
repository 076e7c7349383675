// SPDX-License-Identifier: Apache-2.0
//
// Chooses `train.batch_size: auto` and `train.grad_accum: auto` by measurement.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/apps/recipes/memory/batch_probe.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/model/sizing/peak_line.h"

namespace convoy::recipes {

// With fewer steps per epoch training learns little, regardless of the memory.
inline constexpr int64_t kLeastStepsPerEpoch = 32;

// The units of an epoch: rows, or blocks when packing.
struct BatchItems {
  int64_t count = 0;       // number of units in an epoch
  double mean_tokens = 1;  // mean tokens per unit
  int64_t ranks = 1;

  // Maximum units per step and rank for which an epoch has kLeastStepsPerEpoch steps; at least 1.
  // No limit when the settings give the number of steps or the global batch.
  int64_t most_in_step(const settings::TrainingSettings& wished) const;
};

// Sets numbers in `train`, from `wished`: micro-batches of `batch_rows`, and, if grad_accum is auto
// and no global batch is set, the accumulation nearest to target_tokens_per_device_step. Returns
// true when that would leave an epoch too few steps, and the accumulation was reduced.
bool settle_batch(const settings::TrainingSettings& wished, int64_t batch_rows,
                  const BatchItems& items, settings::TrainingSettings& train);

struct RowLimit {
  int64_t rows = 1;
  std::string bound = {};  // the origin of the limit: "the rows" or "the epoch"
};
// The maximum rows of a micro-batch that is reasonable for the settings and the data.
RowLimit most_batch_rows(const settings::TrainingSettings& wished, const BatchItems& items);

// Logs that steps are smaller than target_tokens_per_device_step.
void report_small_steps(const settings::TrainingSettings& settled, const Log& log);

struct BatchSearch {
  BatchProbe& probe;
  comm::Group& group;
  at::Device device;
  // The plan of the run with this many rows per micro-batch.
  std::function<data::BatchPlan(int64_t batch_rows)> plan_of;
  std::function<int64_t(const data::BatchPlan& plan)> steps_of;  // steps of the whole run
  RowLimit most_rows = {};
  // The search ends when a larger size brings no more tokens per second, even if it would fit.
  bool ends_without_gain = false;
  int processes_on_host = 1;
  // Estimates what is not measured yet, such as the memory for saving.
  sizing::MemoryQuestion formula;
  sizing::StateSharing sharing;
};

struct BatchChoice {
  int64_t batch_rows = 1;
  std::string bound;        // limiting factor: "memory", "speed", or RowLimit::bound
  int64_t limit_bytes = 0;  // memory limit of the rank with the least memory left
  int64_t owned_bytes = 0;  // measured owned memory, the largest of all ranks
  // Predicted resident memory, by the line through smaller sizes.
  int64_t predicted_bytes = 0;
  int64_t measured_bytes = 0;                    // measured resident memory with batch_rows
  double tokens_per_second = 0;                  // rate of all ranks with batch_rows
  double curvature = 0;                          // curvature of the line
  std::vector<sizing::MeasuredPeak> peaks = {};  // owned memory, the largest of all ranks

  std::string text() const;
  nlohmann::ordered_json to_json() const;
};

// Collective. Blocks. Returns the most rows whose peak stays within each rank's memory limit. If
// the search ends without gain, returns the fewest rows that are fast. Equal on every rank. Logs
// each measured size. Returns nothing when a stop was requested: the strategy cannot be used any
// more. Throws ConfigError when one row does not fit.
std::optional<BatchChoice> choose_batch_rows(const BatchSearch& search, const Log& log);

}  // namespace convoy::recipes
