// SPDX-License-Identifier: Apache-2.0
//
// Assigns each row of a data set to a part. The parts depend on a seed and are equal on every
// machine, whichever parts are used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/chain/row_pass.h"

namespace convoy::data {

// The size of a part: a share of all rows, or a number of rows.
struct PartSize {
  std::string name;
  double share = 0;
  int64_t rows = -1;       // -1: the size is a share
  int64_t most_rows = -1;  // limit of a share; further rows go to the first part; -1 = no limit
};

// Parts train, val and test as configured by data.split. Throws ConfigError when the shares do not
// sum to 1 within 1e-6.
std::vector<PartSize> parts_of_split(const settings::SplitSettings& split);

enum class SplitBy {
  Rows,
  Strata,  // every part has the same mix of values of the column, exact to one row
  Groups,  // rows with the same value of the column stay together
};

struct SplitPlan {
  std::vector<PartSize> parts = {};  // at most 255
  SplitBy by = SplitBy::Rows;
  std::string column = {};  // column of the strata or groups
  uint64_t seed = 42;
};

struct RowParts {
  PassReport pass;
  std::vector<uint8_t> part_of_row;  // index of the part by row index; bad rows have one too
  std::vector<int64_t> rows_of_part;
  int64_t num_values = 0;  // number of values of the column
};

// The number of rows in each part: by its share, as data.split divides rows, or as given. The last
// part with a share gets the rest. Throws ConfigError when shares do not sum to 1 within 1e-6, or
// there are too few rows.
std::vector<int64_t> part_sizes(const std::vector<PartSize>& parts, int64_t num_rows);

// Assigns the rows of a pass to parts. SplitBy::Rows with shares gives the same parts as training's
// split of `data.train_path` by `data.split`. Strata and Groups take the rows or groups in a seeded
// order; a group goes to the part that lacks the most rows. Memory: 9 bytes per row for Rows, else
// 1 byte per row and a fixed 64 MiB, and 32 bytes per row on disk in `scratch`. Throws ConfigError,
// DataError for a row without the column, IoError.
RowParts split_rows(const RowPass& pass, const SplitPlan& plan,
                    const std::filesystem::path& scratch);

}  // namespace convoy::data
