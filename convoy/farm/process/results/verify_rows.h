// SPDX-License-Identifier: Apache-2.0
//
// Adds the verdict of the answer checker to rows that hold a reference and a prediction.
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
  int64_t rows = 0;  // rows that were written
  int64_t yes = 0;
  int64_t no = 0;
  int64_t unknown = 0;
  data::BadRowList bad_rows = {};  // rows that were left out
};

// Returns `row` with these columns added or replaced: `verdict` (yes, no, unknown), and the
// compared texts `gold_answer` and `prediction_answer`. Either field may be a text, a number, true,
// false, or null, which means no answer. The reference may be a list of alternative answers. Throws
// DataError with file, line and key.
nlohmann::ordered_json verified_row(const data::Row& row, const VerifyFields& fields);

// Calls `write` with every row of the file, in order. Throws DataError.
VerifyCounts verify_rows(const std::filesystem::path& path, const VerifyFields& fields,
                         data::BadRows policy,
                         const std::function<void(const nlohmann::ordered_json&)>& write);

}  // namespace convoy::process
