// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

// Parquet files, read and written by the plugin (parquet_plugin.h).
RowFormat parquet_format();

}  // namespace convoy::data
