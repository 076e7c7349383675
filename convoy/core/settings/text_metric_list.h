// SPDX-License-Identifier: Apache-2.0
//
// The text metrics by name. Settings, help, error texts and reports read this list, and
// data/evaluate/text_metrics.cpp says how each one scores a row: a metric without a function there,
// or a function without a metric here, does not compile. Plain data.
#pragma once

#include <array>
#include <string_view>

namespace convoy::settings {

struct TextMetricFacts {
  std::string_view name;
  std::string_view help;
  double most = 1;             // from 0 to this
  bool needs_answers = false;  // scored against marked answers in the references
};

inline constexpr std::array<TextMetricFacts, 16> kTextMetrics = {{
    {"rouge1", "ROUGE-1 of rouge_score, not stemmed"},
    {"rouge1_stem", "ROUGE-1 of rouge_score, stemmed"},
    {"rouge2", "ROUGE-2, not stemmed"},
    {"rouge2_stem", "ROUGE-2, stemmed"},
    {"rougeL", "ROUGE-L, not stemmed"},
    {"rougeL_stem", "ROUGE-L, stemmed"},
    {"rougeLsum", "ROUGE-Lsum over lines, not stemmed"},
    {"rougeLsum_stem", "ROUGE-Lsum over lines, stemmed"},
    {"rougeL_unicode", "ROUGE-L over the words of all scripts"},
    {"sari", "SARI of evaluate, 0 to 100: the input is the source", 100},
    {"exact_match", "equal apart from surrounding white space"},
    {"exact_match_squad", "equal apart from case, punctuation and articles"},
    {"token_f1", "F1 over the words of SQuAD"},
    {"numeric_match", "the final number is the same", 1, true},
    {"answer_match", "the answer is equivalent, in any form", 1, true},
    {"schema_compliance", "the prediction is JSON that the schema accepts"},
}};

}  // namespace convoy::settings
