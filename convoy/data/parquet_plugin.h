// SPDX-License-Identifier: Apache-2.0
//
// The symbols of libconvoy_parquet-<version>.so. Parquet is a plugin because its libraries cost every start of a
// program that links them 10 ms. Built by the same compiler from the same sources, so objects and errors cross as they are.
#pragma once

#include <filesystem>

#include "convoy/data/row_source.h"
#include "convoy/data/table_columns.h"

namespace convoy::data {

using OpenParquetFunction =
    RowSource*(const std::filesystem::path& path);  // the caller owns the source
constexpr const char* kOpenParquetSymbol = "convoy_open_parquet";

using ParquetBytesFunction =
    std::string*(const std::vector<TableColumn>& columns);  // the caller owns the text
constexpr const char* kParquetBytesSymbol = "convoy_parquet_bytes";

}  // namespace convoy::data
