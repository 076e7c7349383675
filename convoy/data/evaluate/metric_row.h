// SPDX-License-Identifier: Apache-2.0
//
// The row that a text metric scores, and the functions of all metrics. To add one: a source with
// its function, and a line in core/settings/text_metrics.inl.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "convoy/data/evaluate/json_schema.h"
#include "convoy/data/evaluate/rouge.h"
#include "convoy/data/evaluate/scored_answer.h"

namespace convoy::evaluate {

// The texts of a row as words for a ROUGE metric, computed at first use.
class RowWords {
 public:
  RowWords(const ScoredAnswer& sample, RougeWords kind) : sample_(sample), kind_(kind) {}

  const std::vector<int32_t>& pred();
  const std::vector<std::vector<int32_t>>& refs();
  std::vector<std::vector<int32_t>> lines(const std::string& text);

 private:
  std::vector<int32_t> numbers_of(std::string_view text);
  void make_words();

  const ScoredAnswer& sample_;
  RougeWords kind_;
  WordNumbers numbers_;
  bool has_words_ = false;
  std::vector<int32_t> pred_;
  std::vector<std::vector<int32_t>> refs_;
};

struct MetricRow {
  MetricRow(const ScoredAnswer& of, const JsonSchema* with)
      : sample(of),
        schema(with),
        words{RowWords(of, RougeWords::Plain), RowWords(of, RougeWords::Stemmed),
              RowWords(of, RougeWords::Unicode)} {}

  const ScoredAnswer& sample;
  const JsonSchema* schema;  // nullptr: no schema
  std::array<RowWords, 3> words;
};

// The score of a row in which the metric has nothing to measure.
inline constexpr double kNothingToMeasure = std::numeric_limits<double>::quiet_NaN();

// The maximum of score(pred, ref) over all references.
template <class Score>
double best_of(const MetricRow& row, Score score) {
  double best = 0;
  for (const std::string& ref : row.sample.refs)
    best = std::max(best, static_cast<double>(score(row.sample.pred, ref)));
  return best;
}

namespace metrics {

#define CONVOY_TEXT_METRIC(name, ...) double name(MetricRow& row);
#include "convoy/core/settings/text_metrics.inl"
#undef CONVOY_TEXT_METRIC

}  // namespace metrics

}  // namespace convoy::evaluate
