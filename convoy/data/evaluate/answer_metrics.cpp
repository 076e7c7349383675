// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/equivalence.h"
#include "convoy/data/evaluate/metric_row.h"
#include "convoy/data/evaluate/sari.h"
#include "convoy/data/evaluate/squad.h"
#include "convoy/data/evaluate/text_match.h"
#include "convoy/data/evaluate/text_metrics.h"

namespace convoy::evaluate::metrics {
namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// Parses the reference as a formula only if it marks its answer; prose is compared as text.
bool is_same_answer(std::string_view pred, const std::string& ref) {
  return marks_answer(ref) ? answers::check_answer(ref, pred) == answers::Verdict::Yes
                           : evaluate::exact_match(pred, ref);
}

}  // namespace

double exact_match(MetricRow& row) { return best_of(row, evaluate::exact_match); }
double exact_match_squad(MetricRow& row) { return best_of(row, squad_match); }
double token_f1(MetricRow& row) { return best_of(row, squad_f1); }
double numeric_match(MetricRow& row) { return best_of(row, evaluate::numeric_match); }
double answer_match(MetricRow& row) { return best_of(row, is_same_answer); }

// The `evaluate` library's SARI gives a prediction without words a high score, for its deletions
// and missing additions.
double sari(MetricRow& row) {
  if (!row.sample.input) return kNothingToMeasure;
  const std::vector<std::string>& refs = row.sample.refs;
  if (is_blank(row.sample.pred) && std::none_of(refs.begin(), refs.end(), is_blank)) return 0;
  return 100 * evaluate::sari(*row.sample.input, row.sample.pred, refs);
}

double schema_compliance(MetricRow& row) {
  if (row.schema == nullptr) return kNothingToMeasure;
  return row.schema->accepts_text(row.sample.pred) ? 1 : 0;
}

}  // namespace convoy::evaluate::metrics
