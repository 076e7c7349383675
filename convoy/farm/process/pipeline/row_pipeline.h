// SPDX-License-Identifier: Apache-2.0
//
// The stages of a run as one function of a row and its texts.
#pragma once

#include <vector>

#include "convoy/farm/process/parsing/problem_fields.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/pipeline/row_program.h"
#include "convoy/farm/process/pipeline/row_state.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {

// The reference's answers: from their column, or else from the end of its solution. Empty: there is
// no answer.
std::vector<std::string> golds_of(const RowFields& fields);

class RowPipeline : public RowProgram {
 public:
  explicit RowPipeline(PipelinePlan plan);

  NextSteps next(const InputRow& row, std::span<const KeptStep> kept) const override;
  int64_t expected_cost(const InputRow& row) const override;

  const PipelinePlan& plan() const { return plan_; }

 private:
  void run_stages(RowState& row, RowTexts& texts) const;
  void run_stage(const Stage& stage, const StageInputs& inputs, RowState& row) const;

  PipelinePlan plan_;
  ProblemFields fields_;
  std::vector<const Stage*> stages_;
};

}  // namespace convoy::process
