// SPDX-License-Identifier: Apache-2.0
//
// The one symbol of libconvoy_parquet-<version>.so. Parquet reading is a plugin because its libraries cost every start of a
// program that links them 10 ms. Built by the same compiler from the same sources, so objects and errors cross as they are.
#pragma once

#include <filesystem>

#include "convoy/data/row_source.h"

namespace convoy::data {

using OpenParquetFunction =
    RowSource*(const std::filesystem::path& path);  // the caller owns the source
constexpr const char* kOpenParquetSymbol = "convoy_open_parquet";

}  // namespace convoy::data
