// SPDX-License-Identifier: Apache-2.0
//
// Assigns each row of a data set to a part: by a seed, equal on every machine and for any use of
// the parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/chain/row_pass.h"

namespace convoy::data {

// A share of all rows, or a number of them.
struct PartSize {
  std::string name;
  double share = 0;
  int64_t rows = -1;       // -1: by share
  int64_t most_rows = -1;  // by share: what is beyond goes to the first part; -1 = no limit
};

// Parts train, val and test as configured by data.split. Throws ConfigError when the shares do not
// sum to 1 within 1e-6.
std::vector<PartSize> parts_of_split(const settings::SplitSettings& split);

enum class SplitBy {
  Rows,
  Strata,  // every part has the same mix of the column's values, to the row
  Groups,  // rows with the same value of the column stay together
};

struct SplitPlan {
  std::vector<PartSize> parts = {};  // at most 255
  SplitBy by = SplitBy::Rows;
  std::string column = {};  // column of strata or groups
  uint64_t seed = 42;
};

struct RowParts {
  PassReport pass;
  std::vector<uint8_t> part_of_row;  // by row index; bad rows have one too
  std::vector<int64_t> rows_of_part;
  int64_t num_values = 0;  // number of values of the column
};

// Sizes of the parts of `num_rows`: shares by the bounds of data.split, counts as given, and the
// remainder to the last part with a share. Throws ConfigError when shares do not sum to 1 within
// 1e-6, or there are too few rows.
std::vector<int64_t> part_sizes(const std::vector<PartSize>& parts, int64_t num_rows);

// By rows and shares, equal to training's split of `data.train_path` by `data.split`. Strata and
// groups use a seeded order of rows or groups: a group goes to the part with the largest deficit.
// Memory: 9 bytes per row (Rows), else 1 byte per row and a fixed 64 MiB, with 32 bytes per row in
// `scratch`. Throws ConfigError, DataError for a row without the column, IoError.
RowParts split_rows(const RowPass& pass, const SplitPlan& plan,
                    const std::filesystem::path& scratch);

}  // namespace convoy::data
