// SPDX-License-Identifier: Apache-2.0
//
// Finds problem, solution and answer in the rows of a data set: by the fields that the user named,
// by the catalog, else by the keys of each row: NuminaMath (problem, solution, answer), GSM8K
// (question, answer), MathQA and AQuA (Problem or question, options, Rationale or rationale,
// correct), ASDiv (body, question, answer), conversations (messages).
//
//   const ProblemFields fields(dataset.known, {.problem = "task"});
//   const RowFields row_fields = fields.read(row.value);
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/sources/dataset_catalog.h"
#include "convoy/farm/process/pipeline/row_fields.h"

namespace convoy::process {

// The fields that the user named; empty = not named.
struct FieldNames {
  std::string problem = {};
  std::string solution = {};
  std::string answer = {};
  // For hints: the section of a training's configuration that names fields, such as `rollout`;
  // empty: flags name them.
  std::string section = {};
};

// Thread-safe.
class ProblemFields {
 public:
  // `known` may be null. Fields that the user named come before the catalog's fields.
  explicit ProblemFields(const data::KnownDataset* known = nullptr, FieldNames names = {});

  // The choices become a part of the problem. An answer of "proof" or "notfound", an empty answer
  // and an object do not count. A number or a boolean becomes text. A list holds alternatives; of
  // several solutions the first is taken. The answer of GSM8K is a solution with the result after
  // "####". Throws DataError if the row is no object or has no problem; the message says what the
  // row has instead.
  RowFields read(const nlohmann::ordered_json& row) const;

 private:
  std::string flags() const;  // the flags or the keys that name fields, for hints

  const data::KnownDataset* known_;
  FieldNames names_;
};

}  // namespace convoy::process
