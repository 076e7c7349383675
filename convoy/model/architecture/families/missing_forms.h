// SPDX-License-Identifier: Apache-2.0
//
// Refusals of models: types of models that people ask for and no family reads, and forms that a
// family lacks. No refusal advises to change config.json, which says what the weights are: under
// another name they would be loaded as another model.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/json_reader.h"

namespace convoy::families {

struct MissingType {
  const char* model_type;
  const char* models;   // the best known ones
  const char* needs;    // forms that no family has
  const char* nearest;  // model_type of the family whose models come nearest; "": none does
};

// docs/how-to/models.md lists these types.
std::span<const MissingType> missing_types();
// Null for an unknown type.
const MissingType* find_missing_type(std::string_view model_type);

// Throws DataError for a model_type that is not in `there`, the supported types.
[[noreturn]] void refuse_type(const io::JsonReader& config, const std::string& type,
                              const std::vector<std::string>& there);

// Throws DataError for a key that requests a form, in words such as "soft caps on logits".
// `instead`: the advice on what to use.
[[noreturn]] void refuse_form(const io::JsonReader& config, const std::string& key,
                              const std::string& form, const std::string& instead);

// "take the nearest that runs, `qwen3`: Qwen3 (dense)".
std::string take_nearest(std::string_view model_type);

}  // namespace convoy::families
