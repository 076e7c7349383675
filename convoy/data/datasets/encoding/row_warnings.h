// SPDX-License-Identifier: Apache-2.0
//
// Losses in the rows of a file that are no errors: number of rows, and the first of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

// Rows to which one condition applies.
struct RowTally {
  int64_t rows = 0;
  int64_t first_index = 0;  // 0-based
  int64_t first_line = 0;   // 0 where the format has no lines

  void add(const Sample& sample);
  void add(const RowTally& later);
};

// A row of preferences in texts whose answers begin with the whole prompt, which is then read twice
// and learnt as a part of each answer.
bool repeats_prompt(const Sample& sample);

struct RowLosses {
  int64_t rows_encoded = 0;
  RowTally empty_answers;                         // EncodedRow::empty_answer
  RowTally empty_sides;                           // the same, of a pair
  RowTally tools_unread;                          // EncodedRow::tools_unread
  RowTally documents_unread;                      // EncodedRow::documents_unread
  RowTally calls_unread;                          // EncodedRow::calls_unread
  RowTally reasoning_unread;                      // EncodedRow::reasoning_unread
  RowTally text_unread;                           // EncodedRow::text_unread
  std::map<std::string, RowTally> weight_like;    // by key: Sample::weight_like
  std::map<std::string, RowTally> keys_unread;    // by key: EncodedRow::keys_unread
  std::map<std::string, RowTally> beside_prompt;  // by column: Sample::beside_prompt
  RowTally seams;                                 // EncodedRow::crosses_seam
  RowTally pairs_with_prompt;                     // repeats_prompt(), of a pair
  RowTally answers_with_prompt;                   // the same, of a judged answer
  RowTally answers_cut;                           // nothing that is learnt was left by truncation
  RowTally sides_equal;                           // pairs whose sides differ only in what was cut
  RowTally texts_cut;  // plain texts of which a part was left by truncation

  void add(const Sample& sample, const EncodedRow& row);
  // The part of add() that looks at the sample alone.
  void add_repeated_prompt(const Sample& sample);
  void add(const RowLosses& later);
};

// One sentence per condition, with what to do.
std::vector<std::string> row_warnings(const RowLosses& losses, int64_t max_tokens,
                                      Truncation truncation);

}  // namespace convoy::data
