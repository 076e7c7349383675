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
  // Ids on the Hugging Face hub. The first one is downloaded; the other ids hold the same rows.
  std::vector<const char*> hub_ids;
  const char* config;  // default config; "" when there is only one
  // Names of the fields whose texts, joined by spaces, are the problem.
  std::vector<const char*> problem_fields;
  const char* choices_field;   // field with the choices of a multiple-choice question; "" = none
  const char* solution_field;  // field with the solution; "" = none
  const char* answer_field;    // field with the answer; "" = the answer is in the solution
  const char* about;
};

std::span<const KnownDataset> known_datasets();

// The entry with this key or hub id; nullptr when there is none.
const KnownDataset* find_known_dataset(std::string_view name);

}  // namespace convoy::data
