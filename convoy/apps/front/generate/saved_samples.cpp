// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/generate/saved_samples.h"

#include <filesystem>
#include <iostream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/evaluate/answer_scores.h"
#include "convoy/data/evaluate/figures_text.h"
#include "convoy/data/evaluate/html_report.h"
#include "convoy/data/evaluate/sample_files.h"

namespace convoy::apps {
namespace {

void refuse(const settings::EvalCall& call, const Words& positionals) {
  const std::string where = "with --samples, which needs no model";
  config::refuse_without_effect(
      call.flags, {"data", "split", "limit", "generate", "template_kwargs", "bad_rows"}, where);
  config::refuse_without_effect(call.sampling,
                                {"max_new_tokens", "temperature", "top_p", "top_k", "min_p",
                                 "repetition_penalty", "n", "seed", "greedy", "stop", "logprobs"},
                                where);
  config::refuse_without_effect(call.model, {"model", "adapter", "revision", "dtype"}, where);
  config::refuse_without_effect(call.engine,
                                {"batch_size", "kv_blocks", "prefill_chunk", "deterministic",
                                 "weights", "activations", "kv_dtype"},
                                where);
  if (!positionals.empty())
    throw ConfigError(fmt::format("`{}` has no effect {}", positionals[0], where),
                      {.key = positionals[0], .hint = "leave it out"});
}

}  // namespace

Scoring::Scoring(const settings::MetricFlags& flags, std::string title, std::string folder)
    : flags_(flags),
      title_(std::move(title)),
      folder_(std::move(folder)),
      metrics_(flags.metrics, flags.json_schema),
      report_metric_(evaluate::metric_of_report(flags.report_metric, metrics_.names())) {}

void Scoring::report(const Context& context,
                     const std::vector<evaluate::ScoredAnswer>& samples) const {
  const evaluate::AnswerScores scored = evaluate::score_answers(metrics_, samples);
  if (!folder_.empty())
    write_file_atomic(std::filesystem::path(folder_) / "metrics.json",
                      scored.figures.dump(2) + "\n");
  if (!flags_.report.empty())
    write_file_atomic(flags_.report,
                      evaluate::html_report({.title = title_,
                                             .metric = report_metric_,
                                             .rows = static_cast<size_t>(flags_.report_rows)},
                                            samples, scored));
  std::cout << (context.common.json ? scored.figures.dump() + "\n"
                                    : evaluate::figures_text(scored.figures))
            << std::flush;
}

int evaluate_saved_samples(const Context& context, const settings::EvalCall& call,
                           const Words& positionals) {
  refuse(call, positionals);
  const Scoring scoring(call.metrics, call.flags.samples, call.flags.output_dir);
  scoring.report(context, evaluate::read_samples(call.flags.samples));
  return 0;
}

}  // namespace convoy::apps
