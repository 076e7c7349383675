// SPDX-License-Identifier: Apache-2.0
//
// The metrics of generated text, by name, and their means over a data set. Each scores a row alone;
// larger is better. An empty prediction scores 0 in all of them unless a reference is empty too. Of
// several references the best one counts, except for sari, which uses them together.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/settings/text_metric_list.h"
#include "convoy/data/evaluate/json_schema.h"
#include "convoy/data/evaluate/scored_answer.h"

namespace convoy::evaluate {

using MetricFacts = settings::TextMetricFacts;

// The maximum value of a metric; 1 for an unknown name.
double most_of_metric(std::string_view name);

// True when a reference contains "####" or \boxed.
bool marks_answer(const std::string& reference);

// The scores of one row.
struct RowScores {
  std::vector<double> values = {};  // by metric; NaN: nothing to measure
  bool names_answer = false;        // true: a reference marks its answer
};

class TextMetrics {
 public:
  // `names`: names from text_metrics(); empty = all. `schema_file`: the schema for
  // schema_compliance; empty = none. Throws ConfigError.
  explicit TextMetrics(std::vector<std::string> names = {}, const std::string& schema_file = {});

  const std::vector<std::string>& names() const { return names_; }
  // Thread-safe.
  RowScores score(const ScoredAnswer& sample) const;

 private:
  friend class MetricMeans;
  std::vector<std::string> names_;
  std::vector<size_t> numbers_;  // indices in text_metrics()
  std::optional<JsonSchema> schema_;
};

// Means over rows. Rows must be added in their order, so that the sums are equal on any number of
// ranks.
class MetricMeans {
 public:
  explicit MetricMeans(const TextMetrics& metrics);  // `metrics` must outlive the object

  void add(const RowScores& scores);
  int64_t count() const { return count_; }
  // The mean of a metric. Empty for a metric without data: schema_compliance without a schema, sari
  // without inputs, numeric_match and answer_match when no reference marks its answer.
  std::optional<double> mean(size_t metric) const;
  // The means as {"count": .., "rougeL": .., ..}; the value of a metric without a mean is null.
  nlohmann::json json() const;

 private:
  const TextMetrics& metrics_;
  std::vector<double> sums_;
  int64_t count_ = 0;
  bool has_answers_ = false;
};

}  // namespace convoy::evaluate
