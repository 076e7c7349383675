// SPDX-License-Identifier: Apache-2.0
//
// Counts the rows of a file that lose something without an error, and notes the first row of each
// kind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::data {

// Number of rows to which one condition applies, and the first of them.
struct RowTally {
  int64_t rows = 0;
  int64_t first_index = 0;  // 0-based
  int64_t first_line = 0;   // 0 where the format has no lines

  void add(const Sample& sample);
  void add(const RowTally& later);
};

// "the first is row 3 on line 4".
std::string first_row_of(const RowTally& tally);

// True for a preference row of texts in which the answers begin with the whole prompt. Such a
// prompt is read twice, and learnt as a part of each answer.
bool repeats_prompt(const Sample& sample);

struct RowLosses {
  int64_t rows_encoded = 0;
  RowTally empty_answers;                         // EncodedRow::empty_answer
  RowTally empty_sides;                           // EncodedRow::empty_answer of pairs
  RowTally tools_unread;                          // EncodedRow::tools_unread
  RowTally documents_unread;                      // EncodedRow::documents_unread
  RowTally calls_unread;                          // EncodedRow::calls_unread
  RowTally reasoning_unread;                      // EncodedRow::reasoning_unread
  RowTally text_unread;                           // EncodedRow::text_unread
  RowTally open_ends;                             // EncodedRow::open_end
  std::string first_open_end;                     // text that shows the first open end
  std::map<std::string, RowTally> weight_like;    // by key: Sample::weight_like
  std::map<std::string, RowTally> keys_unread;    // by key: EncodedRow::keys_unread
  std::map<std::string, RowTally> beside_prompt;  // by column: Sample::beside_prompt
  RowTally seams;                                 // EncodedRow::crosses_seam
  RowTally pairs_with_prompt;                     // pairs with repeats_prompt()
  RowTally answers_with_prompt;                   // judged answers with repeats_prompt()
  RowTally answers_cut;                           // rows in which truncation left nothing to learn
  RowTally sides_equal;                           // pairs that differ only in tokens that were cut
  RowTally texts_cut;                             // plain texts that truncation cut
  // By name: EncodedRow::variables_unread.
  std::map<std::string, RowTally> variables_unread;

  void add(const Sample& sample, const EncodedRow& row);
  // Counts only repeats_prompt(), for which the sample alone is enough.
  void add_repeated_prompt(const Sample& sample);
  void add(const RowLosses& later);
};

// One sentence per condition, with what to do.
std::vector<std::string> row_warnings(const RowLosses& losses, int64_t max_tokens,
                                      Truncation truncation);

}  // namespace convoy::data
