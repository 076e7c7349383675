// SPDX-License-Identifier: Apache-2.0
//
// `train.batch_size: auto` and `train.grad_accum: auto`: numbers for them, by measurement.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/apps/recipes/batch_probe.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batch_plan.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/model/sizing/peak_line.h"

namespace convoy::recipes {

// With fewer steps an epoch teaches little, however much memory there is.
inline constexpr int64_t kLeastStepsPerEpoch = 32;

// What numbers are chosen for.
struct BatchUnits {
  int64_t count = 0;       // rows, or blocks when packing, of an epoch
  double mean_tokens = 1;  // of one
  int64_t ranks = 1;

  // Of a step on each rank, so that an epoch has kLeastStepsPerEpoch; at least 1. No limit where
  // the settings say how many steps or which global batch.
  int64_t most_in_step(const settings::TrainingSettings& wished) const;
};

// `train`, as `wished` has it, with numbers: `batch_rows` of a micro-batch, and an accumulation
// that comes nearest to target_tokens_per_device_step where it is auto and no global batch is set.
// True where that would leave an epoch too few steps, and is less.
bool settle_batch(const settings::TrainingSettings& wished, int64_t batch_rows,
                  const BatchUnits& units, settings::TrainingSettings& train);

struct RowLimit {
  int64_t rows = 1;
  std::string bound = {};  // that it comes from: "the rows" or "the epoch"
};
// The most rows of a micro-batch that the settings and the data leave sense in.
RowLimit most_batch_rows(const settings::TrainingSettings& wished, const BatchUnits& units);

// Says that steps are smaller than target_tokens_per_device_step asks for.
void report_small_steps(const settings::TrainingSettings& settled, const Log& log);

struct BatchSearch {
  BatchProbe& probe;
  comm::Group& group;
  at::Device device;
  // The plan of the run with so many rows a micro-batch.
  std::function<data::BatchPlan(int64_t batch_rows)> plan_of;
  std::function<int64_t(const data::BatchPlan& plan)> steps_of;  // of the whole run
  RowLimit most_rows = {};
  int processes_on_host = 1;
  sizing::MemoryQuestion formula;  // what is not measured yet, and what saving will want
  sizing::StateSharing sharing;
  const std::atomic<bool>& stop_requested;
};

struct BatchChoice {
  int64_t batch_rows = 1;
  std::string bound;            // what did not let it be more: "memory", or that of RowLimit
  int64_t limit_bytes = 0;      // of the rank that has least left
  int64_t owned_bytes = 0;      // what it takes of that
  int64_t predicted_bytes = 0;  // of resident memory, by the line through smaller sizes
  int64_t measured_bytes = 0;   // the same, of a step with that many rows
  double curvature = 0;         // of the line
  std::vector<sizing::MeasuredPeak> peaks = {};  // owned memory of the rank that held most

  std::string text() const;
  nlohmann::ordered_json to_json() const;
};

// Collective. Blocks. The most rows whose peak stays within what each rank may take; equal on every
// rank. Throws ConfigError where one row does not.
BatchChoice choose_batch_rows(const BatchSearch& search, const Log& log);

}  // namespace convoy::recipes
