// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "convoy/data/datasets/formats/byte_sink.h"
#include "convoy/data/datasets/formats/column_type.h"

namespace convoy::data {

// Writes a Parquet file row by row, in row groups of bounded size. One thread.
class ParquetWriter {
 public:
  virtual ~ParquetWriter() = default;
  // `row`: an object whose values fit the columns; a missing value is written as null. Throws
  // DataError, IoError.
  virtual void write(const nlohmann::ordered_json& row) = 0;
  virtual void finish() = 0;  // must be the last call
};

// `columns`: a settled Struct. The file has Zstandard pages with checksums. `sink` must outlive the
// writer. Throws IoError when the plugin is missing.
std::unique_ptr<ParquetWriter> create_parquet(const ColumnType& columns, ByteSink& sink);

}  // namespace convoy::data
