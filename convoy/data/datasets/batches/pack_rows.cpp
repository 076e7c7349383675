// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/pack_rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::data {

std::vector<std::vector<int64_t>> pack_best_fit_decreasing(std::span<const int64_t> lengths_tokens,
                                                           int64_t block_tokens) {
  const auto length_of = [&](int64_t row) { return lengths_tokens[static_cast<size_t>(row)]; };
  std::vector<int64_t> rows(lengths_tokens.size());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return length_of(a) > length_of(b); });
  std::vector<std::vector<int64_t>> blocks;
  std::set<std::pair<int64_t, size_t>> free_tokens;  // pairs (tokens left, block)
  for (const int64_t row : rows) {
    const int64_t length = length_of(row);
    if (length > block_tokens)
      throw ConfigError(
          fmt::format("packing: row {} has {} tokens, a block holds {}", row, length, block_tokens),
          {.hint = "raise model.max_seq_len, or let data.truncation cut the row"});
    const auto found = free_tokens.lower_bound({length, 0});
    size_t block = blocks.size();
    int64_t left = block_tokens;
    if (found != free_tokens.end()) {
      std::tie(left, block) = *found;
      free_tokens.erase(found);
    } else {
      blocks.emplace_back();
    }
    blocks[block].push_back(row);
    free_tokens.insert({left - length, block});
  }
  return blocks;
}

}  // namespace convoy::data
