// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/sample_reader.h"

#include <utility>

#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {

SampleReader::SampleReader(std::filesystem::path path, SchemaConfig config, BadRows bad_rows,
                           RowUse use)
    : path_(std::move(path)),
      config_(std::move(config)),
      policy_(bad_rows),
      use_(use),
      rows_(open_dataset(find_dataset(
          {.name = path_.string(), .text_rows = text_rows_named(config_.text_rows)}))) {
  if (use == RowUse::Learn) rows_ = rows_by_schema(std::move(rows_), config_, bad_rows, ranked_);
}

std::optional<Sample> SampleReader::next() {
  while (std::optional<PulledRow> pulled = pull()) {
    PreparedRow prepared = prepare(std::move(*pulled));
    if (accept(prepared)) return std::move(prepared.sample);
  }
  return std::nullopt;
}

std::optional<PulledRow> SampleReader::pull() {
  try {
    std::optional<RawRow> raw = rows_->next_raw();
    if (!raw) return std::nullopt;
    rows_pulled_ = raw->row.index + 1;
    return PulledRow{.index = raw->row.index, .raw = std::move(*raw)};
  } catch (const DataError& error) {
    if (!rows_->row_is_lost()) throw;
    return PulledRow{.index = rows_pulled_++, .error = error};
  }
}

PreparedRow SampleReader::prepare(PulledRow pulled) const {
  PreparedRow prepared{.index = pulled.index, .error = std::move(pulled.error)};
  if (prepared.error) return prepared;
  try {
    return converted(parse_row(std::move(pulled.raw), policy_));
  } catch (const DataError& error) {
    prepared.error = error;
    return prepared;
  }
}

PreparedRow SampleReader::converted(const Row& row) const {
  ConvertedRow made =
      use_ == RowUse::Continue ? convert_prompt(row, config_) : convert_to_learn(row, config_);
  return {.index = row.index,
          .sample = std::move(made.sample),
          .schema = made.schema,
          .fields_cut = made.fields_cut,
          .characters_replaced = row.characters_replaced,
          .unread = std::move(made.unread)};
}

bool SampleReader::accept(const PreparedRow& prepared) {
  rows_seen_ = prepared.index + 1;
  try {
    if (prepared.error) throw DataError(*prepared.error);
    if (use_ == RowUse::Learn) require_one_schema(prepared);
  } catch (const DataError& error) {
    report_bad_row(error, prepared.index);
    return false;
  }
  refuse_unread(prepared.sample, prepared.unread, config_);
  if (use_ == RowUse::Learn) schema_ = prepared.schema;
  unread_.add(prepared.unread);
  bad_.add_replaced(prepared.characters_replaced);
  fields_cut_ += prepared.fields_cut;
  return true;
}

void SampleReader::require_one_schema(const PreparedRow& prepared) const {
  if (!schema_ || *schema_ == prepared.schema) return;
  throw DataError(
      fmt::format("row {} has the schema {}, the rows before it have {}", prepared.index + 1,
                  schema_name(prepared.schema), schema_name(*schema_)),
      {.file = prepared.sample.file,
       .line = prepared.sample.line,
       .hint = "split the file by schema, or force one with data.schema"});
}

std::string SampleReader::unread_columns() const {
  if (unread_.empty()) return {};
  return unread_.sentence("not read") + "; data.unread_columns: error refuses such rows";
}

void SampleReader::require_samples() const {
  if (rows_seen_ > bad_.count()) return;
  if (rows_seen_ == 0 && ranked_->lists > 0)
    throw DataError("no pair is left: " + ranked_lists(),
                    {.file = path_.string(),
                     .hint = "write answers that differ, with ranks or scores that differ"});
  throw DataError(
      rows_seen_ == 0 ? "the file has no rows" : "no row is left: " + bad_.summary(),
      {.file = path_.string(),
       .hint = rows_seen_ == 0 ? "name a file with rows"
                               : "`convoy data validate` lists what is wrong with the rows"});
}

void SampleReader::report_bad_row(const DataError& error, int64_t index) {
  bad_.add(error, index, rows_seen_, policy_);
}

}  // namespace convoy::data
