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

// Which answers of a list form pairs. Adjacent: each answer and the next worse one.
enum class RankedPairs { BestVsWorst, BestVsRest, Adjacent, All };

// The value for a name in data.ranked_pairs: "best_vs_worst", ... Throws ConfigError.
RankedPairs ranked_pairs_named(std::string_view name);
std::string_view ranked_pairs_name(RankedPairs which);

// True for a row with a list of answers and their scores or ranks, in one of the known forms, and
// without sides.
bool is_ranked_row(const nlohmann::ordered_json& row);

struct RankedCounts {
  int64_t lists = 0;
  int64_t pairs = 0;
  int64_t without_pair = 0;  // lists that give no pair
  int64_t ties = 0;          // pairs left out because of equal ranks or equal answers
  int64_t unranked = 0;      // answers without a score or rank

  // A sentence such as "12 ranked lists make 11 pairs (best_vs_worst); ..."; empty when there was
  // no list.
  std::string sentence(RankedPairs which) const;
};

// Returns preference rows without an index. Each has the columns of the row, except that `chosen`,
// `rejected` and their scores or ranks replace the list and its scores. Throws DataError.
std::vector<Row> pairs_of_ranked_row(const Row& row, RankedPairs which, RankedCounts& counts);

// If the first readable row of a file is a ranked list, returns the pairs of all rows, numbered in
// their order. The rows of other files are not changed. `counts` is filled while rows are read.
std::unique_ptr<RowSource> with_ranked_pairs(std::unique_ptr<RowSource> rows, RankedPairs which,
                                             BadRows bad_rows,
                                             std::shared_ptr<RankedCounts> counts);

}  // namespace convoy::data
