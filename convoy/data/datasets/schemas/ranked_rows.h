// SPDX-License-Identifier: Apache-2.0
//
// Ranked lists as preferences: a row with several answers to one prompt, each with a score or a
// rank, becomes rows with `chosen` and `rejected`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/formats/row_source.h"

namespace convoy::data {

// Which answers of a list stand side by side. Adjacent: each beside the next worse one.
enum class RankedPairs { BestVsWorst, BestVsRest, Adjacent, All };

// As data.ranked_pairs spells them: "best_vs_worst", ... Throws ConfigError.
RankedPairs ranked_pairs_named(std::string_view name);
std::string_view ranked_pairs_name(RankedPairs which);

// A list of answers with their scores or ranks, in one of the known forms, and no sides.
bool is_ranked_row(const nlohmann::ordered_json& row);

struct RankedCounts {
  int64_t lists = 0;
  int64_t pairs = 0;
  int64_t without_pair = 0;  // lists
  int64_t ties = 0;          // pairs left out: of one rank, or of equal answers
  int64_t unranked = 0;      // answers without a score

  // "12 ranked lists make 11 pairs (best_vs_worst); ..."; empty when there was no list.
  std::string sentence(RankedPairs which) const;
};

// Preference rows without an index: the columns of the row, the list and its scores in place of
// which stand `chosen`, `rejected` and the score or rank of both. Throws DataError.
std::vector<Row> pairs_of_ranked_row(const Row& row, RankedPairs which, RankedCounts& counts);

// The pairs of a file whose first readable row is a ranked list, numbered in their order; the rows
// of other files as they are. `counts` is filled while rows are read.
std::unique_ptr<RowSource> with_ranked_pairs(std::unique_ptr<RowSource> rows, RankedPairs which,
                                             BadRows bad_rows,
                                             std::shared_ptr<RankedCounts> counts);

}  // namespace convoy::data
