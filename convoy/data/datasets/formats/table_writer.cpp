// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/table_writer.h"

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

TableWriter::TableWriter(const std::filesystem::path& path)
    : path_(path), file_(path), spool_(path.has_parent_path() ? path.parent_path() : ".") {}

void TableWriter::write(const nlohmann::ordered_json& row) {
  if (!row.is_object())
    throw DataError(fmt::format("row {} is no object, which a table needs", rows_ + 1),
                    {.file = path_.string(),
                     .hint = "write JSON lines instead: name an output that ends in .jsonl"});
  spool_.add(json_row_text(row, -1, rows_ + 1, path_));
  columns_.add(row);
  ++rows_;
}

WrittenFile TableWriter::finish() {
  columns_.kind = ColumnType::Kind::Struct;  // a table without rows is a Struct, too
  for (auto& [name, type] : columns_.fields) type.settle();
  begin_table(columns_, file_);
  const auto rows = spool_.rows();
  while (const auto row = rows->next()) write_row(row->value);
  end_table();
  return file_.publish(rows_);
}

}  // namespace convoy::data
