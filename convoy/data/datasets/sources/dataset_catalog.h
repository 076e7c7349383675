// SPDX-License-Identifier: Apache-2.0
//
// Data sets with a short name, and the fields of their rows with problem, solution and answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

struct KnownDataset {
  const char* key;
  // Ids on the Hugging Face hub. The first one is downloaded; the others hold the same rows.
  std::vector<const char*> hub_ids;
  const char* config;  // taken when none is named; "" where there is but one
  // The problem is the text of these fields, joined by spaces.
  std::vector<const char*> problem_fields;
  const char* choices_field;   // choices of a multiple-choice question; "" = none
  const char* solution_field;  // "" = none
  const char* answer_field;    // "" = it stands in the solution
  const char* about;
};

std::span<const KnownDataset> known_datasets();

// By key or by one of its hub ids; nullptr when there is none.
const KnownDataset* find_known_dataset(std::string_view name);

}  // namespace convoy::data
