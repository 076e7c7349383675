// SPDX-License-Identifier: Apache-2.0
//
// The rows that a model learns from its own solutions: of each problem the right, distinct and
// shortest ones, with the prompt that they were written to. Reads the output of a run that
// generated and verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::process {

// The answers in an output.
struct AnswerCounts {
  int64_t problems = 0;       // rows with a reference answer
  int64_t solved = 0;         // problems whose chosen solution is right: any sample, if one is
  int64_t samples = 0;        // all samples of problems
  int64_t right_samples = 0;  // and complete, with a text: keep_solutions() chooses among them

  double accuracy() const {
    return problems > 0 ? static_cast<double>(solved) / static_cast<double>(problems) : 0;
  }
};

// Adds one row of an output.
void count_answers(const nlohmann::ordered_json& row, AnswerCounts& counts);

struct KeptCounts {
  int64_t distinct = 0;
  int64_t kept = 0;
};

// Calls `keep` with the rows to learn of one row of an output, the shortest first: `messages` where
// the plan chats, else `prompt` and `completion`. Which texts are one and how long a text is:
// training_rows.h; of equally long ones the first sample counts. A text that was cut is not kept.
KeptCounts keep_solutions(const PipelinePlan& plan, const nlohmann::ordered_json& row, int64_t most,
                          const std::function<void(const nlohmann::ordered_json&)>& keep);

// Reads the output in `file`. Throws DataError.
void for_each_output_row(const std::filesystem::path& file,
                         const std::function<void(const nlohmann::ordered_json&)>& visit);

}  // namespace convoy::process
