// SPDX-License-Identifier: Apache-2.0
//
// `train.batch_size: auto` and `train.grad_accum: auto`: numbers for them, by measurement.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/base/log.h"
#include "convoy/data/batch_plan.h"
#include "convoy/recipes/batch_probe.h"
#include "convoy/settings/train_settings.h"
#include "convoy/sizing/memory_plan.h"
#include "convoy/sizing/peak_line.h"

namespace convoy::recipes {

// `train`, as `wished` has it, with numbers: `batch_rows` of a micro-batch, and an accumulation that
// comes nearest to target_tokens_per_device_step where it is auto and no global batch is set.
// `unit_tokens`: mean tokens of a row, or of a block when packing.
void settle_batch(const settings::TrainingSettings& wished, int64_t batch_rows, double unit_tokens,
                  settings::TrainingSettings& train);

// The most rows of a micro-batch that the settings and the data leave sense in. `units`: rows, or
// blocks, of the data set.
int64_t most_batch_rows(const settings::TrainingSettings& wished, int64_t units, double unit_tokens,
                        int64_t ranks);

struct BatchSearch {
  BatchProbe& probe;
  comm::Group& group;
  at::Device device;
  // The plan of the run with so many rows a micro-batch.
  std::function<data::BatchPlan(int64_t batch_rows)> plan_of;
  std::function<int64_t(const data::BatchPlan& plan)> steps_of;  // of the whole run
  int64_t most_rows = 1;
  int processes_on_host = 1;
  sizing::MemoryQuestion formula;  // what is not measured yet, and what saving will want
  std::string strategy;
  const std::atomic<bool>& stop_requested;
};

struct BatchChoice {
  int64_t batch_rows = 1;
  std::string bound;            // what did not let it be more: "memory" or "the rows"
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
