// SPDX-License-Identifier: Apache-2.0
//
// Metrics of generated answers, in `convoy eval` and in evaluations during training. Plain
// data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/text_metric_list.h"

namespace convoy::settings {

inline const std::vector<std::string>& text_metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const TextMetricFacts& metric : kTextMetrics) list.emplace_back(metric.name);
    return list;
  }();
  return names;
}

inline bool is_text_metric(std::string_view name) {
  const std::vector<std::string>& names = text_metric_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The mean difference of the rewards of both completions of a pair.
inline constexpr std::string_view kMarginMetric = "eval_rewards/margins";

// The accepted values of train.metric_for_best_model.
inline std::vector<std::string> best_metric_names() {
  std::vector<std::string> names = {"eval_loss", "eval_perplexity", "eval_mean_token_accuracy",
                                    "eval_accuracy", std::string(kMarginMetric)};
  for (const std::string& name : text_metric_names()) names.push_back("eval_" + name);
  return names;
}

inline constexpr const char* kJsonSchemaHelp =
    "JSON schema file that schema_compliance checks answers against; empty = nothing to check";

// Flags of `convoy eval`.
struct MetricFlags {
  std::vector<std::string> metrics;
  std::string json_schema;
  std::string report;
  std::string report_metric;
  int64_t report_rows = 50;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("metrics", metrics, "text metrics, such as rougeL,sari; empty = all")
        .one_of(text_metric_names());
    visit("json_schema", json_schema, kJsonSchemaHelp);
    visit("report", report, "HTML file with the metrics and the worst rows; self-contained");
    visit("report_metric", report_metric,
          "metric that orders the rows of the report; empty = rougeL, or the first of --metrics");
    visit("report_rows", report_rows, "rows that the report shows").at_least(1);
  }
};

// Keys of `train` for evaluations during training.
struct GeneratingEvaluationSettings {
  bool predict_with_generate = false;
  int64_t generation_max_new_tokens = 64;
  double generation_temperature = 0;
  std::vector<std::string> eval_metrics = {"rougeL", "sari", "exact_match", "token_f1",
                                           "numeric_match"};
  int64_t eval_generate_rows = 200;
  double eval_generate_seconds = 0;
  std::string eval_json_schema;

  // eval_metrics and, if it is not among them, the metric that decides the best model.
  std::vector<std::string> measured_metrics(const std::string& best_metric) const {
    std::vector<std::string> names = eval_metrics;
    if (is_text_metric(best_metric) &&
        std::find(names.begin(), names.end(), best_metric) == names.end())
      names.push_back(best_metric);
    return names;
  }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("predict_with_generate", predict_with_generate,
          "evaluations also answer validation rows and measure the answers");
    visit("generation_max_new_tokens", generation_max_new_tokens,
          "longest answer of an evaluation, in tokens")
        .at_least(1);
    visit("generation_temperature", generation_temperature,
          "temperature of an evaluation's answers; 0 = greedy, else sampled with the seed")
        .at_least(0);
    visit("eval_metrics", eval_metrics, "text metrics of an evaluation")
        .one_of(text_metric_names());
    visit("eval_generate_rows", eval_generate_rows,
          "validation rows that an evaluation answers, the first of them; 0 = all")
        .at_least(0);
    visit("eval_generate_seconds", eval_generate_seconds,
          "stop answering rows after this many seconds of an evaluation; 0 = no limit")
        .at_least(0);
    visit("eval_json_schema", eval_json_schema, kJsonSchemaHelp);
  }
};

}  // namespace convoy::settings
