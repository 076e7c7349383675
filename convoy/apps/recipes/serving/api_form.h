// SPDX-License-Identifier: Apache-2.0
//
// The form that an answer must have, as requests ask for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/serving/api_fields.h"
#include "convoy/data/text/answer_grammar.h"

namespace convoy::recipes {

struct AskedForm {
  text::GrammarSource source;
  std::string field;  // its field in the request, for errors
  // The schemas within the source, each with its field.
  struct Part {
    text::GrammarSource source;
    std::string field;
  };
  std::vector<Part> parts = {};
};

// Reads `response_format` (OpenAI) and `structured_outputs` (vLLM); nothing when any text will do.
// vLLM's older names `guided_*` are refused with the name of today. Throws ApiError.
// https://platform.openai.com/docs/guides/structured-outputs
// https://docs.vllm.ai/en/latest/features/structured_outputs.html
std::optional<AskedForm> read_form(FieldReader& fields);

}  // namespace convoy::recipes
