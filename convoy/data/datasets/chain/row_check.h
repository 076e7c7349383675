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
  const SampleEncoder* encoder = nullptr;  // none: tokens are not looked at
  TruncationPolicy truncation = {};        // policy for rows above max_tokens; 0 = none
  // Used only without an encoder, which has its own setting. Skip counts empty answers, as training
  // does.
  EmptyAnswers empty_answers = EmptyAnswers::Skip;
  BadRows bad_rows = BadRows::Error;  // Replace mends rows first
};

struct RowCheckReport {
  int64_t rows = 0;
  int64_t faults = 0;
  int64_t rows_cut = 0;      // longer than max_tokens
  int64_t rows_dropped = 0;  // good ones that training leaves out: every answer is empty
  std::string ranked;        // RankedCounts::sentence()
  std::string schema;        // schema of the first good row
  RowLosses losses;          // losses of the good rows
  UnreadColumns unread;      // columns of the good rows
  BadRowList bad;            // characters of the good rows that BadRows::Replace replaced
};

// `take` gets the faults in the order of the rows. A row is bad when it cannot be read, has another
// schema than the first good one, is refused by the template, or has no supervised token though its
// answer is not empty. Empty answers are what training makes of them.
RowCheckReport check_rows(const Dataset& dataset, const RowCheck& check,
                          const std::function<void(const RowFault&)>& take);

// Statistics of the rows of a data set.
struct RowFigures {
  PassReport pass;
  std::map<std::string, int64_t> rows_by_schema;
  LengthFigures turns;
  LengthFigures characters;
  LengthFigures tokens;      // with an encoder
  LengthFigures supervised;  // tokens, with an encoder
  LengthFigures longest;  // tokens that max_seq_len limits: of the row, or of a pair's longer side
  // Answers of pairs: tokens with an encoder, else characters.
  LengthFigures chosen;
  LengthFigures rejected;
  LengthFigures shared;  // tokens with which both sides begin, with an encoder
  std::string ranked;    // RankedCounts::sentence()
  int64_t own_bos = 0;
};

// Rows may have different schemas.
RowFigures measure_rows(const RowPass& pass, const SchemaConfig& schema,
                        const SampleEncoder* encoder);

}  // namespace convoy::data
