// SPDX-License-Identifier: Apache-2.0
//
// A data file as samples: rows, their one schema, conversion, and the policy for rows that cannot
// be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "convoy/data/datasets/row_source.h"
#include "convoy/data/datasets/schema.h"

namespace convoy::data {

enum class RowUse {
  Learn,     // one schema for all rows of the file
  Continue,  // prompts: convert_prompt()
};

// A row as it came out of the file, or why it did not.
struct PulledRow {
  int64_t index = 0;
  RawRow raw = {};
  std::optional<DataError> error = {};
};

// What it came to, alone: whether it fits the rows before it accept() says.
struct PreparedRow {
  int64_t index = 0;
  Sample sample = {};
  Schema schema = Schema::Messages;
  int64_t fields_cut = 0;
  std::optional<DataError> error = {};
};

// One thread, but for prepare().
class SampleReader {
 public:
  // `path`: any name of a data set (dataset.h).
  SampleReader(std::filesystem::path path, SchemaConfig config, BadRows bad_rows,
               RowUse use = RowUse::Learn);

  // The next sample; nothing at the end. The schema of the first row is the schema of the file:
  // another one later is an error. Throws DataError with file and line.
  std::optional<Sample> next();

  // The steps of next(), for readers that prepare rows side by side: pull() and accept() see every
  // row in order.
  std::optional<PulledRow> pull();              // Throws DataError that ends the file
  PreparedRow prepare(PulledRow pulled) const;  // Thread-safe
  // Whether the sample is one to use. Counts, or throws by the policy.
  bool accept(const PreparedRow& prepared);

  std::optional<Schema> schema() const { return schema_; }  // empty before the first row
  int64_t rows_seen() const { return rows_seen_; }          // unreadable ones included
  int64_t fields_cut() const { return fields_cut_; }
  const BadRowList& bad_rows() const { return bad_; }
  // At the end of the file. Throws DataError when it held no row, or only bad ones.
  void require_samples() const;
  // For rows that only show to be unusable later (a template that refuses them): counts, or throws
  // by the policy.
  void report_bad_row(const DataError& error, int64_t index);

 private:
  PreparedRow converted(const Row& row) const;
  void require_one_schema(const PreparedRow& prepared) const;

  std::filesystem::path path_;
  SchemaConfig config_;
  BadRows policy_;
  RowUse use_;
  std::unique_ptr<RowSource> rows_;
  std::optional<Schema> schema_;
  BadRowList bad_;
  int64_t rows_pulled_ = 0;
  int64_t rows_seen_ = 0;  // of those, accepted or not
  int64_t fields_cut_ = 0;
};

}  // namespace convoy::data
