// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/metric_row.h"

namespace convoy::evaluate {

const std::vector<int32_t>& RowWords::pred() {
  if (!has_words_) make_words();
  return pred_;
}

const std::vector<std::vector<int32_t>>& RowWords::refs() {
  if (!has_words_) make_words();
  return refs_;
}

std::vector<std::vector<int32_t>> RowWords::lines(const std::string& text) {
  std::vector<std::vector<int32_t>> lines;
  for (const std::string_view line : lines_of(text)) lines.push_back(numbers_of(line));
  return lines;
}

std::vector<int32_t> RowWords::numbers_of(std::string_view text) {
  return numbers_.of(rouge_words(text, kind_));
}

void RowWords::make_words() {
  has_words_ = true;
  pred_ = numbers_of(sample_.pred);
  for (const std::string& ref : sample_.refs) refs_.push_back(numbers_of(ref));
}

namespace metrics {
namespace {

RowWords& words_of(MetricRow& row, RougeWords kind) { return row.words[static_cast<size_t>(kind)]; }

double best_rouge_n(MetricRow& row, RougeWords kind, size_t n) {
  RowWords& words = words_of(row, kind);
  double best = 0;
  for (const auto& ref : words.refs()) best = std::max(best, rouge_n(ref, words.pred(), n));
  return best;
}

double best_rouge_l(MetricRow& row, RougeWords kind) {
  RowWords& words = words_of(row, kind);
  double best = 0;
  for (const auto& ref : words.refs()) best = std::max(best, rouge_l(ref, words.pred()));
  return best;
}

double best_rouge_l_sum(MetricRow& row, RougeWords kind) {
  RowWords& words = words_of(row, kind);
  const auto pred = words.lines(row.sample.pred);
  double best = 0;
  for (const std::string& ref : row.sample.refs)
    best = std::max(best, rouge_l_sum(words.lines(ref), pred));
  return best;
}

}  // namespace

double rouge1(MetricRow& row) { return best_rouge_n(row, RougeWords::Plain, 1); }
double rouge1_stem(MetricRow& row) { return best_rouge_n(row, RougeWords::Stemmed, 1); }
double rouge2(MetricRow& row) { return best_rouge_n(row, RougeWords::Plain, 2); }
double rouge2_stem(MetricRow& row) { return best_rouge_n(row, RougeWords::Stemmed, 2); }
double rougeL(MetricRow& row) { return best_rouge_l(row, RougeWords::Plain); }
double rougeL_stem(MetricRow& row) { return best_rouge_l(row, RougeWords::Stemmed); }
double rougeLsum(MetricRow& row) { return best_rouge_l_sum(row, RougeWords::Plain); }
double rougeLsum_stem(MetricRow& row) { return best_rouge_l_sum(row, RougeWords::Stemmed); }
double rougeL_unicode(MetricRow& row) { return best_rouge_l(row, RougeWords::Unicode); }

}  // namespace metrics
}  // namespace convoy::evaluate
