// SPDX-License-Identifier: Apache-2.0
//
// The results of a training benchmark, and the file that comparison scripts of the field read:
// train_{framework}_{model}.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy::recipes {

// A step over all ranks.
struct BenchStep {
  double seconds = 0;       // slowest rank's time
  double wait_seconds = 0;  // blocked in collectives, mean of the ranks
  double loss = 0;
  double learning_rate = 0;
  int64_t memory_bytes = 0;  // peak of the step on the rank that takes most
};

struct BenchRecord {
  std::string geometry;
  std::string strategy;
  std::string device_kind;  // "cpu", "cuda"
  int64_t ranks = 1;
  int64_t batch = 0;  // rows per micro-batch and rank
  int64_t grad_accum = 1;
  int64_t row_tokens = 0;
  int64_t total_parameters = 0;
  int64_t trained_parameters = 0;
  int64_t planned_bytes = 0;          // for one rank
  std::vector<BenchStep> steps = {};  // the first step warms up and is in no average

  int64_t global_batch() const { return batch * grad_accum * ranks; }
  int64_t step_tokens() const { return global_batch() * row_tokens; }
  // Seconds of the steps after the first, sorted.
  std::vector<double> step_seconds() const;
  double communication_share() const;  // share of the time of these steps
};

// The keys and units of tprimat's files: GB are 1e9 bytes, floats have 5 decimals.
nlohmann::ordered_json benchmark_file(const BenchRecord& record);

}  // namespace convoy::recipes
