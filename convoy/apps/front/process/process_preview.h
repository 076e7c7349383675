// SPDX-License-Identifier: Apache-2.0
//
// The preview of `convoy process`: its plan, and the first prompt as the model reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/results/run_report.h"

namespace convoy::apps {

// The number of texts that the stages generate for `rows` rows, at most.
process::RunEstimate estimate_run(const process::PipelinePlan& plan, int64_t rows);

struct ProcessPreview {
  std::string dataset = {};  // name and location
  int64_t rows = 0;
  std::string workers = {};
  std::string memory = {};  // the rung of the memory ladder; empty = there is no budget
  process::RunEstimate estimate = {};
  std::optional<std::string> first_prompt = {};  // empty: no stage generates text
};

std::string preview_text(const process::PipelinePlan& plan, const ProcessPreview& preview);
nlohmann::ordered_json preview_json(const process::PipelinePlan& plan,
                                    const ProcessPreview& preview);

}  // namespace convoy::apps
