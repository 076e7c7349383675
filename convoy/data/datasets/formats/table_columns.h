// SPDX-License-Identifier: Apache-2.0
//
// A table with one type per column, for files of other programs. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace convoy::data {

template <class T>
using Cells = std::vector<std::optional<T>>;  // an empty cell is null

struct TableColumn {
  std::string name;
  std::variant<Cells<int64_t>, Cells<double>, Cells<bool>, Cells<std::string>> cells;  // UTF-8
};

// The content of a Parquet file: nullable columns of int64, double, bool and string; Zstandard
// pages with checksums. All columns must have the same length. Blocks. Throws DataError, and
// IoError when the plugin is missing.
std::string parquet_bytes(const std::vector<TableColumn>& columns);

}  // namespace convoy::data
