// SPDX-License-Identifier: Apache-2.0
//
// Finds problem, solution and answer in the rows of a data set: by the named fields, by the
// catalog, else by the keys of each row: NuminaMath (problem, solution, answer), GSM8K (question,
// answer), MathQA and AQuA (Problem or question, options, Rationale or rationale, correct), ASDiv
// (body, question, answer), conversations (messages).
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

// Each empty where it is not named.
struct FieldNames {
  std::string problem = {};
  std::string solution = {};
  std::string answer = {};
};

// Thread-safe.
class ProblemFields {
 public:
  // `known` may be null. Named fields come before the catalog's fields.
  explicit ProblemFields(const data::KnownDataset* known = nullptr, FieldNames names = {});

  // Choices are part of the problem. An answer of "proof", "notfound" or an empty one does not
  // count; a number or a boolean is its text; a list holds alternatives (of solutions the first is
  // taken); an object does not count. The answer of GSM8K is a solution, with its result behind
  // "####". Throws DataError when the row is no object or has no problem; the message says what the
  // row has instead.
  RowFields read(const nlohmann::ordered_json& row) const;

 private:
  const data::KnownDataset* known_;
  FieldNames names_;
};

}  // namespace convoy::process
