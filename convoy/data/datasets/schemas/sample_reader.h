// SPDX-License-Identifier: Apache-2.0
//
// A data file as samples: rows, their one schema, conversion, and the policy for unreadable rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/schemas/schema.h"
#include "convoy/data/datasets/schemas/unread_columns.h"

namespace convoy::data {

enum class RowUse {
  Learn,     // rows to learn; the file has one schema
  Continue,  // prompts to continue; see convert_prompt()
};

// A row read from the file, or the reason why it could not be read.
struct PulledRow {
  int64_t index = 0;
  RawRow raw = {};
  std::optional<DataError> error = {};
};

// The conversion of one row alone. accept() checks whether it fits the rows before it.
struct PreparedRow {
  int64_t index = 0;
  Sample sample = {};
  Schema schema = Schema::Messages;
  int64_t fields_cut = 0;
  int64_t characters_replaced = 0;
  std::vector<std::string> unread = {};  // names of the unread columns
  std::optional<DataError> error = {};
};

// One thread, except for prepare().
class SampleReader {
 public:
  // `path`: any name of a data set (dataset.h).
  SampleReader(std::filesystem::path path, SchemaConfig config, BadRows bad_rows,
               RowUse use = RowUse::Learn);

  // Returns the next sample; empty at the end. The schema of the first row is the schema of the
  // file: another one later is an error. Throws DataError with file and line.
  std::optional<Sample> next();

  // The steps of next(), for readers that prepare rows in parallel. pull() and accept() must
  // process every row, in order.
  std::optional<PulledRow> pull();              // Throws the DataErrors that end the file
  PreparedRow prepare(PulledRow pulled) const;  // Thread-safe
  // Returns true when the sample is usable. Otherwise counts the row as bad, or throws as
  // `bad_rows` says. Throws DataError when the configuration refuses rows with unread columns.
  bool accept(const PreparedRow& prepared);

  std::optional<Schema> schema() const { return schema_; }  // empty before the first accepted row
  int64_t rows_seen() const { return rows_seen_; }          // unreadable rows included
  int64_t fields_cut() const { return fields_cut_; }
  const BadRowList& bad_rows() const { return bad_; }
  // A sentence about the columns of usable rows that nothing reads; empty when there are none.
  std::string unread_columns() const;
  // A sentence about the ranked lists that became pairs; empty when there are none.
  std::string ranked_lists() const { return ranked_->sentence(config_.ranked_pairs); }
  // Call it at the end of the file. Throws DataError when the file has no row, or only bad rows.
  void require_samples() const;
  // For a row that proves unusable later (refused by a template): counts it as bad, or throws as
  // `bad_rows` says.
  void report_bad_row(const DataError& error, int64_t index);

 private:
  PreparedRow converted(const Row& row) const;
  void require_one_schema(const PreparedRow& prepared) const;

  std::filesystem::path path_;
  SchemaConfig config_;
  BadRows policy_;
  RowUse use_;
  std::shared_ptr<RankedCounts> ranked_ = std::make_shared<RankedCounts>();
  std::unique_ptr<RowSource> rows_;
  std::optional<Schema> schema_;
  BadRowList bad_;
  UnreadColumns unread_;
  int64_t rows_pulled_ = 0;
  int64_t rows_seen_ = 0;  // number of rows so far, accepted or not
  int64_t fields_cut_ = 0;
};

}  // namespace convoy::data
