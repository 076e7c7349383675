// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/dataset_catalog.h"

#include <algorithm>

namespace convoy::data {

std::span<const KnownDataset> known_datasets() {
  static const std::vector<KnownDataset> kKnown = {
      {.key = "gsm8k",
       .hub_ids = {"openai/gsm8k", "gsm8k"},
       .config = "main",
       .problem_fields = {"question"},
       .choices_field = "",
       .solution_field = "answer",
       .answer_field = "",
       .about = "grade school word problems; the answer stands behind ####"},
      {.key = "math_qa",
       .hub_ids = {"allenai/math_qa", "math_qa"},
       .config = "",
       .problem_fields = {"Problem"},
       .choices_field = "options",
       .solution_field = "Rationale",
       .answer_field = "correct",
       .about = "multiple choice with a rationale; the answer is a letter"},
      {.key = "math",
       .hub_ids = {"EleutherAI/hendrycks_math", "hendrycks/math", "hendrycks/competition_math"},
       .config = "algebra",
       .problem_fields = {"problem"},
       .choices_field = "",
       .solution_field = "solution",
       .answer_field = "",
       .about = "competition problems by subject; the answer stands in \\boxed{}"},
      {.key = "asdiv",
       .hub_ids = {"EleutherAI/asdiv", "mawic/asdiv"},
       .config = "",
       .problem_fields = {"body", "question"},
       .choices_field = "",
       .solution_field = "",
       .answer_field = "answer",
       .about = "word problems of primary school; the answer carries its unit in brackets"},
      {.key = "aqua",
       .hub_ids = {"deepmind/aqua_rat", "allenai/aqua_rat", "aqua_rat"},
       .config = "raw",
       .problem_fields = {"question"},
       .choices_field = "options",
       .solution_field = "rationale",
       .answer_field = "correct",
       .about = "algebra with multiple choice and a rationale; the answer is a letter"},
      {.key = "numina_math",
       .hub_ids = {"AI-MO/NuminaMath-1.5"},
       .config = "",
       .problem_fields = {"problem"},
       .choices_field = "",
       .solution_field = "solution",
       .answer_field = "answer",
       .about = "896,215 competition problems with answers"},
      {.key = "numina_math_cot",
       .hub_ids = {"AI-MO/NuminaMath-CoT"},
       .config = "",
       .problem_fields = {"problem"},
       .choices_field = "",
       .solution_field = "solution",
       .answer_field = "",
       .about = "859,494 problems with worked solutions; the answer stands in \\boxed{}"},
  };
  return kKnown;
}

const KnownDataset* find_known_dataset(std::string_view name) {
  for (const KnownDataset& known : known_datasets()) {
    const bool is_id =
        std::find(known.hub_ids.begin(), known.hub_ids.end(), name) != known.hub_ids.end();
    if (name == known.key || is_id) return &known;
  }
  return nullptr;
}

}  // namespace convoy::data
