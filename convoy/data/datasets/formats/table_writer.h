// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/data/datasets/formats/column_type.h"
#include "convoy/data/datasets/formats/output_file.h"
#include "convoy/data/datasets/formats/row_spool.h"
#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::data {

// Base of the formats whose header names all columns. Rows are stored in a nameless file beside the
// output until the last row was written.
class TableWriter : public RowWriter {
 public:
  explicit TableWriter(const std::filesystem::path& path);

  void write(const nlohmann::ordered_json& row) override;
  WrittenFile finish() override;

 protected:
  virtual void begin_table(const ColumnType& columns, OutputFile& file) = 0;
  virtual void write_row(const nlohmann::ordered_json& row) = 0;
  virtual void end_table() {}

 private:
  std::filesystem::path path_;
  OutputFile file_;
  RowSpool spool_;
  ColumnType columns_;
  int64_t rows_ = 0;
};

}  // namespace convoy::data
