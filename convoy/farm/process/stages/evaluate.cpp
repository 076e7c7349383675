// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {

bool evaluate_version(const StageInputs& inputs, const RowState& row, const Candidate& candidate,
                      size_t number, Version& version) {
  if (version.finish == TextFinish::Error) return true;
  const settings::EvaluateSettings& judge = inputs.plan.settings.evaluate;
  std::map<std::string, std::string> values = row_values(row);
  values["reasoning"] = version.shown();
  values["solution"] = version.answer.value_or("");
  const std::string text = inputs.plan.evaluate.render(values);
  const std::string key = fmt::format("evaluate/{}/{}", candidate.number, number);
  const KeptStep* step = inputs.texts.find_or_ask(key, [&] {
    return TextRequest{.prompt = inputs.plan.prompt(text),
                       .sampling = {.temperature = judge.temperature,
                                    .top_p = judge.top_p,
                                    .max_new_tokens = judge.max_tokens},
                       .draw = draw_source(inputs.plan, row, TextKind::Judgement, candidate.number,
                                           static_cast<int64_t>(number)),
                       .schema = inputs.plan.schema("evaluate")};
  });
  if (step == nullptr) return false;
  const TextResult& result = step->result;
  const ThinkText reply = split_think(result.text, inputs.plan.opens_think(text));
  const std::map<std::string, double> weights(judge.weights.begin(), judge.weights.end());
  version.judgement = Judgement{.scores = inputs.plan.schema("evaluate").empty()
                                              ? read_judge_scores(reply.said, weights)
                                              : read_json_scores(reply.said, weights),
                                .text = reply.said,
                                .finish = result.finish,
                                .other_finish = result.other_finish};
  return true;
}

namespace {

void evaluate(const StageInputs& inputs, const RowState& row, Candidate& candidate) {
  for (size_t number = 0; number < candidate.versions.size(); ++number)
    if (!evaluate_version(inputs, row, candidate, number, candidate.versions[number]))
      candidate.waiting = true;
}

TextDemand evaluate_demand(const settings::ProcessSettings& settings) {
  return {.requests = settings.generate.n,
          .new_tokens = settings.generate.n * settings.evaluate.max_tokens};
}

nlohmann::ordered_json score_figure(const RowState& /*row*/, const Version* version) {
  if (version == nullptr || !version->score()) return nullptr;
  return *version->score();
}

}  // namespace

Stage evaluate_stage() {
  return {.name = "evaluate",
          .summary = "lets the model judge each solution",
          .demand = evaluate_demand,
          .of_candidate = evaluate,
          .figures = {{"score", {}, score_figure}}};
}

}  // namespace convoy::process
