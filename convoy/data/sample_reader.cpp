// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/sample_reader.h"

#include <utility>

#include "convoy/data/dataset.h"

namespace convoy::data {

SampleReader::SampleReader(std::filesystem::path path, SchemaConfig config, BadRows bad_rows,
                           RowUse use)
    : path_(std::move(path)),
      config_(std::move(config)),
      policy_(bad_rows),
      use_(use),
      rows_(open_dataset(find_dataset({.name = path_.string()}))) {}

std::optional<Sample> SampleReader::next() {
  while (true) {
    bool was_read = false;
    try {
      const std::optional<Row> row = rows_->next();
      if (!row) return std::nullopt;
      was_read = true;
      rows_seen_ = row->index + 1;
      return convert(*row);
    } catch (const DataError& error) {
      // A row that does not convert concerns itself only; one that could not be read may have cost the rest of the file.
      if (!was_read && !rows_->row_is_lost()) throw;
      if (!was_read) ++rows_seen_;
      report_bad_row(error, rows_seen_ - 1);
    }
  }
}

Sample SampleReader::convert(const Row& row) {
  if (use_ == RowUse::Continue) return convert_prompt(row, config_);
  const Schema schema = detect_schema(row, config_);
  if (schema_ && *schema_ != schema)
    throw DataError(fmt::format("row {} has the schema {}, the rows before it have {}",
                                row.index + 1, schema_name(schema), schema_name(*schema_)),
                    {.file = row.file,
                     .line = row.line,
                     .hint = "split the file by schema, or force one with data.schema"});
  ConvertedRow converted = convert_row(row, schema, config_);
  schema_ = schema;
  fields_cut_ += converted.fields_cut;
  return std::move(converted.sample);
}

void SampleReader::require_samples() const {
  if (rows_seen_ > bad_.count()) return;
  throw DataError(rows_seen_ == 0 ? "the file has no rows" : "no row is left: " + bad_.summary(),
                  {.file = path_.string()});
}

void SampleReader::report_bad_row(const DataError& error, int64_t index) {
  bad_.add(error, index, rows_seen_, policy_);
}

}  // namespace convoy::data
