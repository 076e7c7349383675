// SPDX-License-Identifier: Apache-2.0
//
// The tidy table of a sweep as a Parquet file. Throws IoError when the plugin is missing,
// DataError.
#pragma once

#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::apps {

// Columns and nulls of sweep::tidy_columns. Counts and seeds are int64, measures double; a
// parameter is int64, double or bool when all its values are, else text.
std::string tidy_parquet(const sweep::SweepResults& results);

}  // namespace convoy::apps
