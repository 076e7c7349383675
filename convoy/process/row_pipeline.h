// SPDX-License-Identifier: Apache-2.0
//
// The stages of a run as one function of a row and its texts.
#pragma once

#include <functional>
#include <vector>

#include "convoy/process/pipeline_plan.h"
#include "convoy/process/row_program.h"
#include "convoy/process/row_state.h"
#include "convoy/process/stages/stage.h"

namespace convoy::process {

// What a row of the data set says. Throws DataError for a row that can not be used.
using ReadFields = std::function<RowFields(const nlohmann::ordered_json& row)>;

class RowPipeline : public RowProgram {
 public:
  RowPipeline(PipelinePlan plan, ReadFields read_fields);

  NextSteps next(const InputRow& row, std::span<const KeptStep> kept) const override;
  int64_t expected_cost(const InputRow& row) const override;

  const PipelinePlan& plan() const { return plan_; }

 private:
  void run_stages(RowState& row, RowTexts& texts) const;
  void run_stage(const Stage& stage, const StageInputs& inputs, RowState& row) const;

  PipelinePlan plan_;
  ReadFields read_fields_;
  std::vector<const Stage*> stages_;
};

}  // namespace convoy::process
