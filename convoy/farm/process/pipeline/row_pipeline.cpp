// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/row_pipeline.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/data/answers/extraction.h"
#include "convoy/farm/process/pipeline/row_values.h"

namespace convoy::process {
namespace {

bool waits(const RowState& row) {
  return std::any_of(row.candidates.begin(), row.candidates.end(),
                     [](const Candidate& candidate) { return candidate.waiting; });
}

// A run without `generate` evaluates and improves the solutions of the data set.
void take_given_solution(RowState& row) {
  if (!row.fields.solution || row.fields.solution->empty())
    throw DataError("the row has no solution, and there is no stage that generates one",
                    {.hint = "add generate to --stages, or name the column with --solution-field"});
  Candidate candidate;
  candidate.versions.push_back(
      read_version({.key = {}, .result = {.text = *row.fields.solution}}, false));
  row.candidates.push_back(std::move(candidate));
}

}  // namespace

std::vector<std::string> golds_of(const RowFields& fields) {
  if (!fields.answers.empty() || !fields.solution) return fields.answers;
  std::string answer = answers::extract_answer(*fields.solution, answers::Author::Reference);
  if (answer.empty()) return {};
  return {std::move(answer)};
}

RowPipeline::RowPipeline(PipelinePlan plan)
    : plan_(std::move(plan)),
      fields_(problem_fields(plan_.settings.data)),
      stages_(stages_named(plan_.settings.stages)) {}

void RowPipeline::run_stage(const Stage& stage, const StageInputs& inputs, RowState& row) const {
  if (stage.of_row != nullptr) return stage.of_row(inputs, row);
  for (size_t number = 0; number < row.candidates.size(); ++number) {
    Candidate& candidate = row.candidates[number];
    const bool is_passed_over = row.chosen && *row.chosen != number;
    if (!candidate.waiting && !is_passed_over) stage.of_candidate(inputs, row, candidate);
  }
}

void RowPipeline::run_stages(RowState& row, RowTexts& texts) const {
  const StageInputs inputs{plan_, texts};
  if (!plan_.has_stage("generate")) take_given_solution(row);
  for (const Stage* stage : stages_) {
    if (stage->of_row != nullptr && waits(row)) return;
    run_stage(*stage, inputs, row);
  }
}

NextSteps RowPipeline::next(const InputRow& input, std::span<const KeptStep> kept) const {
  RowState row{.input = &input};
  RowTexts texts(kept);
  try {
    if (!input.unreadable.empty())
      throw DataError(input.unreadable,
                      {.hint = "correct the row in the data set, or leave it out"});
    row.fields = fields_.read(input.value);
    row.golds = golds_of(row.fields);
    run_stages(row, texts);
  } catch (const DataError& error) {
    return {.finished = FinishedRow{.state = "bad_input",
                                    .value = input_only_value(input, "bad_input", error.what())}};
  }
  NextSteps next{.steps = texts.take_asked()};
  if (!next.steps.empty() || waits(row)) return next;
  if (row.figures.is_null()) row.figures = filter_figures(row);
  next.finished =
      FinishedRow{.state = row_state_name(row), .value = output_value(plan_, row, kept)};
  return next;
}

int64_t RowPipeline::expected_cost(const InputRow& input) const {
  // A long problem is expected to have a long solution.
  return static_cast<int64_t>(input.value.dump().size());
}

}  // namespace convoy::process
