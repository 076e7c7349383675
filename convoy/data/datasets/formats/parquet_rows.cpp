// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/parquet_rows.h"

#include <memory>

#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/formats/table_writer.h"

namespace convoy::data {
namespace {

class ParquetTableWriter : public TableWriter {
 public:
  using TableWriter::TableWriter;

 protected:
  void begin_table(const ColumnType& columns, OutputFile& file) override {
    parquet_ = create_parquet(columns, file);
  }
  void write_row(const nlohmann::ordered_json& row) override { parquet_->write(row); }
  void end_table() override { parquet_->finish(); }

 private:
  std::unique_ptr<ParquetWriter> parquet_;
};

bool has_parquet_magic(ByteReader& file) { return file.ahead(4).starts_with("PAR1"); }

}  // namespace

RowFormat parquet_format() {
  return {.name = "Parquet",
          .suffixes = {".parquet"},
          .sniff = has_parquet_magic,
          .open = [](ByteReader file, TextRows) { return open_parquet(file.path()); },
          .create = [](const std::filesystem::path& path) -> std::unique_ptr<RowWriter> {
            return std::make_unique<ParquetTableWriter>(path);
          },
          .may_be_compressed = false,
          .is_table = true};
}

}  // namespace convoy::data
