// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/process/stages/stage.h"
#include "convoy/farm/process/text_sampling.h"

namespace convoy::process {
namespace {

void generate(const StageInputs& inputs, RowState& row) {
  const settings::DrawSettings& draw = inputs.plan.settings.generate;
  const std::string text = inputs.plan.generate.render(row_values(row));
  for (int64_t number = 0; number < draw.n; ++number) {
    Candidate candidate{.number = number};
    const KeptStep* step = inputs.texts.find_or_ask(fmt::format("generate/{}", number), [&] {
      return TextRequest{.prompt = inputs.plan.prompt(text),
                         .sampling = text_sampling(draw, draw.temperature, draw.max_tokens),
                         .draw = draw_source(inputs.plan, row, TextKind::Solution, number, 0),
                         .schema = inputs.plan.schema("generate")};
    });
    if (step == nullptr)
      candidate.waiting = true;
    else
      candidate.versions.push_back(
          read_version(*step, inputs.plan.opens_think(text), inputs.plan.schema("generate")));
    row.candidates.push_back(std::move(candidate));
  }
}

TextDemand generate_demand(const settings::ProcessSettings& settings) {
  return {.requests = settings.generate.n,
          .new_tokens = settings.generate.n * settings.generate.max_tokens};
}

}  // namespace

Stage generate_stage() {
  return {.name = "generate",
          .summary = "writes n solutions",
          .demand = generate_demand,
          .of_row = generate};
}

}  // namespace convoy::process
