// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/status.h>
#include <parquet/properties.h>

#include <memory>
#include <stdexcept>

namespace convoy::data {

// Throws an Arrow status as an exception. Each file of this folder turns it into a convoy::Error.
inline void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

inline std::shared_ptr<parquet::WriterProperties> parquet_properties() {
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::ZSTD)->enable_page_checksum();
  return properties.build();
}

}  // namespace convoy::data
