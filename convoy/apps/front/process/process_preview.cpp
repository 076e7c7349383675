// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_preview.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convoy/core/base/counted.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::apps {

process::RunEstimate estimate_run(const process::PipelinePlan& plan, int64_t rows) {
  process::RunEstimate estimate{.rows = rows};
  for (const process::Stage* stage : process::stages_named(plan.settings.stages)) {
    if (stage->demand == nullptr) continue;
    const process::TextDemand demand = stage->demand(plan.settings);
    estimate.requests += rows * demand.requests;
    estimate.new_tokens += rows * demand.new_tokens;
  }
  return estimate;
}

std::string preview_text(const process::PipelinePlan& plan, const ProcessPreview& preview) {
  std::string text;
  const auto line = [&text](const char* name, const std::string& value) {
    text += fmt::format("{:<10} {}\n", name, value);
  };
  line("data set", preview.dataset);
  line("rows", fmt::format("{}", preview.rows));
  line("model", plan.settings.model.name);
  line("stages", fmt::format("{}", fmt::join(plan.settings.stages, ", ")));
  for (const process::Stage* stage : process::stages_named(plan.settings.stages)) {
    if (stage->demand == nullptr) continue;
    const process::TextDemand demand = stage->demand(plan.settings);
    line("", fmt::format("{}: at most {} and {} new tokens a row", stage->name,
                         counted(demand.requests, "request"), demand.new_tokens));
  }
  line("in all",
       fmt::format("at most {} and {} new tokens", counted(preview.estimate.requests, "request"),
                   telemetry::count_text(static_cast<double>(preview.estimate.new_tokens))));
  line("workers", preview.workers);
  if (!preview.memory.empty()) line("memory", preview.memory);
  line("output", plan.settings.output.path);
  if (preview.first_prompt) text += "first prompt:\n" + *preview.first_prompt + "\n";
  return text;
}

nlohmann::ordered_json preview_json(const process::PipelinePlan& plan,
                                    const ProcessPreview& preview) {
  return {{"dataset", preview.dataset},
          {"rows", preview.rows},
          {"model", plan.settings.model.name},
          {"stages", plan.settings.stages},
          {"requests_at_most", preview.estimate.requests},
          {"new_tokens_at_most", preview.estimate.new_tokens},
          {"workers", preview.workers},
          {"memory", preview.memory},
          {"output", plan.settings.output.path},
          {"first_prompt", preview.first_prompt ? nlohmann::ordered_json(*preview.first_prompt)
                                                : nlohmann::ordered_json(nullptr)}};
}

}  // namespace convoy::apps
