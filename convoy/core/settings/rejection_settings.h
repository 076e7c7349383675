// SPDX-License-Identifier: Apache-2.0
//
// Task rejection: rounds in which a model solves problems, and learns from its right solutions.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/solution_fields.h"

namespace convoy::settings {

struct RejectionSettings {
  int64_t rounds = 3;
  int64_t samples = 8;
  int64_t keep = 4;
  std::string from = "base";
  double min_gain = 0;
  // Rejection sampling needs varied solutions: arXiv 2308.01825 draws at 0.7.
  double temperature = 0.7;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  int64_t max_tokens = 256;
  config::NameList stop;
  std::string prompt;
  std::string chat = "auto";
  std::string problem_field;
  std::string solution_field;
  std::string answer_field;
  config::AutoOr<int64_t> batch_size;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("rounds", rounds,
          "most rounds of generate, keep, train, evaluate; a finished run goes on with more")
        .at_least(1)
        .at_most(1000);
    visit("samples", samples, "solutions of each problem and round").at_least(1).at_most(4096);
    visit("keep", keep,
          "right solutions of a problem that are learnt: distinct ones, the shortest first")
        .at_least(1);
    visit("from", from,
          "the model that each round trains: base = model.name with tuning.lora.adapter, as STaR "
          "(arXiv 2203.14465); last = the last round's result (expert iteration)")
        .one_of({"base", "last"});
    visit(
        "min_gain", min_gain,
        "share of data.val_path's problems by which a round must beat the best before it; the run "
        "ends at one that does not; -1 = at no round")
        .at_least(-1)
        .at_most(1);
    visit_draw_fields(*this, visit, "evaluations take that one, under the same repetition_penalty");
    visit(
        "prompt", prompt,
        "file of the prompt, as `convoy process` reads it; empty = the shipped one (`convoy config "
        "prompts`)");
    visit(
        "chat", chat,
        "on: prompts are user turns in the model's chat template; off: plain text; auto = on where "
        "the model has a template")
        .one_of({"auto", "on", "off"});
    visit_problem_columns(*this, visit);
    visit("batch_size", batch_size, "problems in flight in each rank; auto = as `convoy process`")
        .at_least(1)
        .at_most(65536);
  }
};

}  // namespace convoy::settings
