// SPDX-License-Identifier: Apache-2.0
//
// Training rows that a model learns from its own solutions: for each problem the right, distinct
// and shortest solutions, each with the prompt that the model answered. Reads the output of a run
// that generated and verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::process {

// Counts of right answers in an output.
struct AnswerCounts {
  int64_t problems = 0;  // rows with a reference answer
  int64_t solved = 0;    // problems whose chosen solution is right
  int64_t samples = 0;   // all samples of problems
  // Right, whole samples with a text: keep_solutions() chooses among them.
  int64_t right_samples = 0;

  double accuracy() const {
    return problems > 0 ? static_cast<double>(solved) / static_cast<double>(problems) : 0;
  }
};

// Adds one row of an output to the counts.
void count_answers(const nlohmann::ordered_json& row, AnswerCounts& counts);

struct KeptCounts {
  int64_t distinct = 0;
  int64_t kept = 0;
};

// Calls `keep` with the training rows made from one row of an output, the shortest first:
// `messages` if the plan chats, else `prompt` and `completion`. training_rows.h says which texts
// count as equal and how the length of a text is measured. If texts are equally long, the first
// sample is kept. A text that was cut is not kept.
KeptCounts keep_solutions(const PipelinePlan& plan, const nlohmann::ordered_json& row, int64_t most,
                          const std::function<void(const nlohmann::ordered_json&)>& keep);

// Reads the output in `file` and calls `visit` with each row. Throws DataError.
void for_each_output_row(const std::filesystem::path& file,
                         const std::function<void(const nlohmann::ordered_json&)>& visit);

}  // namespace convoy::process
