// SPDX-License-Identifier: Apache-2.0
//
// Rows that hold a reference and a prediction, each with the verdict of the answer checker beside
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/formats/row_source.h"

namespace convoy::process {

struct VerifyFields {
  std::string gold = "gold";
  std::string prediction = "prediction";
};

struct VerifyCounts {
  int64_t rows = 0;  // written
  int64_t yes = 0;
  int64_t no = 0;
  int64_t unknown = 0;
  data::BadRowList bad_rows = {};  // left out
};

// `row` with `verdict` (yes, no, unknown), `gold_answer` and `prediction_answer` (what was
// compared) added, or replaced. Either field may be text, a number, true or false, or null, which
// is no answer; the reference may be a list of which any is right. Throws DataError with file, line
// and key.
nlohmann::ordered_json verified_row(const data::Row& row, const VerifyFields& fields);

// Hands every row of the file to `write`, in order. Throws DataError.
VerifyCounts verify_rows(const std::filesystem::path& path, const VerifyFields& fields,
                         data::BadRows policy,
                         const std::function<void(const nlohmann::ordered_json&)>& write);

}  // namespace convoy::process
