// SPDX-License-Identifier: Apache-2.0
//
// Checks every row of a data set against the requirements of training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "convoy/data/datasets/chain/length_figures.h"
#include "convoy/data/datasets/chain/row_pass.h"
#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/row_warnings.h"
#include "convoy/data/datasets/schemas/schema.h"
#include "convoy/data/datasets/schemas/unread_columns.h"

namespace convoy::data {

struct RowFault {
  int64_t index = 0;  // 0-based
  std::string file;
  int64_t line = 0;    // 0 where the format has no lines
  int64_t column = 0;  // 0 where the whole row is at fault
  std::string reason;
  std::string hint;
};

struct RowCheck {
  SchemaConfig schema;
  const SampleEncoder* encoder = nullptr;  // nullptr: token checks are left out
  TruncationPolicy truncation = {};        // policy for rows above max_tokens (0 = no limit)
  // Used only without an encoder, because an encoder has its own setting. Skip: empty answers are
  // counted, because training skips them.
  EmptyAnswers empty_answers = EmptyAnswers::Skip;
  BadRows bad_rows = BadRows::Error;  // Replace: damaged rows are mended before the check
};

struct RowCheckReport {
  int64_t rows = 0;
  int64_t faults = 0;
  int64_t rows_cut = 0;      // rows longer than max_tokens
  int64_t rows_dropped = 0;  // good rows that training leaves out: every answer is empty
  std::string ranked;        // RankedCounts::sentence()
  std::string schema;        // schema of the first good row
  RowLosses losses;          // losses of the good rows
  UnreadColumns unread;      // columns of the good rows
  BadRowList bad;            // characters of the good rows that BadRows::Replace replaced
};

// Checks all rows; `take` receives the faults in the order of the rows. A row is bad in four cases:
// it cannot be read; its schema is not the schema of the first good row; the template refuses it;
// or it has no supervised token although its answer is not empty. Empty answers are treated as
// training treats them.
RowCheckReport check_rows(const Dataset& dataset, const RowCheck& check,
                          const std::function<void(const RowFault&)>& take);

// Statistics of the rows of a data set.
struct RowFigures {
  PassReport pass;
  std::map<std::string, int64_t> rows_by_schema;
  LengthFigures turns;
  LengthFigures characters;
  LengthFigures tokens;      // number of tokens; with an encoder
  LengthFigures supervised;  // number of supervised tokens; with an encoder
  LengthFigures longest;     // tokens that max_seq_len limits: of a row, or of a pair's longer side
  // Lengths of the answers of pairs: in tokens with an encoder, else in characters.
  LengthFigures chosen;
  LengthFigures rejected;
  LengthFigures shared;  // number of tokens that both sides begin with; with an encoder
  std::string ranked;    // RankedCounts::sentence()
  int64_t own_bos = 0;
};

// Rows may have different schemas.
RowFigures measure_rows(const RowPass& pass, const SchemaConfig& schema,
                        const SampleEncoder* encoder);

}  // namespace convoy::data
