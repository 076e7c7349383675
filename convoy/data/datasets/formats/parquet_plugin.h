// SPDX-License-Identifier: Apache-2.0
//
// The symbols of libconvoy_parquet-<version>.so: Parquet and compression, through Arrow's
// libraries. It is a plugin because linking them would add 10 ms to every start. Built by the same
// compiler from the same sources, so objects and exceptions may cross the boundary.
#pragma once

#include <filesystem>
#include <memory>

#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/formats/compressor.h"
#include "convoy/data/datasets/formats/parquet_writer.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/formats/table_columns.h"

namespace convoy::data {

using OpenParquetFunction =
    RowSource*(const std::filesystem::path& path);  // the caller owns the source
constexpr const char* kOpenParquetSymbol = "convoy_open_parquet";

using ParquetBytesFunction =
    std::string*(const std::vector<TableColumn>& columns);  // the caller owns the text
constexpr const char* kParquetBytesSymbol = "convoy_parquet_bytes";

// The caller owns the returned object. `columns` and `sink` are described in parquet_writer.h.
using CreateParquetFunction = ParquetWriter*(const ColumnType& columns, ByteSink& sink);
constexpr const char* kCreateParquetSymbol = "convoy_create_parquet";

using OpenCompressedFunction = ByteStream*(const std::filesystem::path& path,
                                           Compression compression);
constexpr const char* kOpenCompressedSymbol = "convoy_open_compressed";

using MakeCompressorFunction = Compressor*(Compression compression);
constexpr const char* kMakeCompressorSymbol = "convoy_make_compressor";

// Loads the plugin if it is not loaded yet. Throws IoError when it is missing.
void require_parquet_plugin();

// `path` is a readable file.
std::unique_ptr<RowSource> open_parquet(const std::filesystem::path& path);

std::unique_ptr<ByteStream> open_compressed(const std::filesystem::path& path,
                                            Compression compression);

}  // namespace convoy::data
