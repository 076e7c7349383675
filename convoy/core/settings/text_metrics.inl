// SPDX-License-Identifier: Apache-2.0
//
// The one registry of text metrics, one line each: name, help, other members of TextMetricFacts.
// The line declares the function convoy::evaluate::metrics::NAME, which scores a row.
// Includers define CONVOY_TEXT_METRIC.
CONVOY_TEXT_METRIC(rouge1, "ROUGE-1 of rouge_score, not stemmed")
CONVOY_TEXT_METRIC(rouge1_stem, "ROUGE-1 of rouge_score, stemmed")
CONVOY_TEXT_METRIC(rouge2, "ROUGE-2, not stemmed")
CONVOY_TEXT_METRIC(rouge2_stem, "ROUGE-2, stemmed")
CONVOY_TEXT_METRIC(rougeL, "ROUGE-L, not stemmed")
CONVOY_TEXT_METRIC(rougeL_stem, "ROUGE-L, stemmed")
CONVOY_TEXT_METRIC(rougeLsum, "ROUGE-Lsum over lines, not stemmed")
CONVOY_TEXT_METRIC(rougeLsum_stem, "ROUGE-Lsum over lines, stemmed")
CONVOY_TEXT_METRIC(rougeL_unicode, "ROUGE-L over the words of all scripts")
CONVOY_TEXT_METRIC(sari, "SARI of evaluate, 0 to 100: the input is the source", .most = 100)
CONVOY_TEXT_METRIC(exact_match, "equal apart from surrounding white space")
CONVOY_TEXT_METRIC(exact_match_squad, "equal apart from case, punctuation and articles")
CONVOY_TEXT_METRIC(token_f1, "F1 over the words of SQuAD")
CONVOY_TEXT_METRIC(numeric_match, "the final number is the same", .needs_answers = true)
CONVOY_TEXT_METRIC(answer_match, "the answer is equivalent, in any form", .needs_answers = true)
CONVOY_TEXT_METRIC(schema_compliance, "the prediction is JSON that the schema accepts")
