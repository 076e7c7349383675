// SPDX-License-Identifier: Apache-2.0
//
// The rows of one file, encoded one after another, for commands that answer, score or show them. A
// row that cannot be encoded is treated as one that cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "convoy/core/base/log.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/row_warnings.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {

struct EncodedSample {
  Sample sample;
  EncodedRow row;
};

// One thread.
class EncodedRows {
 public:
  using Encode = std::function<EncodedRow(const Sample&)>;

  EncodedRows(std::filesystem::path path, SchemaConfig config, BadRows bad_rows, RowUse use,
              Encode encode);

  // Returns the next good row, with its source_index; empty at the end. Throws DataError.
  std::optional<EncodedSample> next();

  // Call it after the last row. Throws DataError when there was no row. Logs the skipped rows, the
  // rows whose extra BOS was dropped, what the rows lose (row_warnings.h), and the columns that
  // nothing reads. LostParts::Named: another reader of the file has logged the last two already.
  enum class LostParts { Named, Unnamed };
  void finish(const Log& log, LostParts lost = LostParts::Unnamed) const;

 private:
  SampleReader reader_;
  Encode encode_;
  int64_t rows_own_bos_ = 0;
  RowLosses losses_;
};

}  // namespace convoy::data
