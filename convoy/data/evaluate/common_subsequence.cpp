// SPDX-License-Identifier: Apache-2.0
//
// A row of the table of lengths grows by 0 or 1 from column to column, so a row is stored as bits:
// bit j is set when column j + 1 is one more than column j. A few word operations compute a row
// from the row before it (Hyyrö, 2004).
#include "convoy/data/evaluate/common_subsequence.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

namespace convoy::evaluate {
namespace {

using Bits = std::vector<uint64_t>;

bool bit_of(const Bits& bits, size_t place) { return (bits[place / 64] >> (place % 64) & 1) != 0; }

size_t count_up_to(const Bits& bits, size_t end) {
  size_t count = 0;
  for (size_t word = 0; word < end / 64; ++word)
    count += static_cast<size_t>(std::popcount(bits[word]));
  if (end % 64 != 0)
    count += static_cast<size_t>(std::popcount(bits[end / 64] & ((uint64_t{1} << end % 64) - 1)));
  return count;
}

class RowMaker {
 public:
  explicit RowMaker(std::span<const int32_t> columns) : matches_(columns.size() / 64 + 1) {
    for (size_t place = 0; place < columns.size(); ++place)
      places_[columns[place]].push_back(place);
  }

  Bits first_row() const { return Bits(matches_.size()); }

  // Computes the next row of the table, for one more token, in place.
  void advance(Bits& row, int32_t token) {
    const auto found = places_.find(token);
    if (found == places_.end()) return;
    for (const size_t place : found->second) matches_[place / 64] |= uint64_t{1} << place % 64;
    uint64_t shifted_in = 1;
    uint64_t borrow = 0;
    for (size_t word = 0; word < row.size(); ++word) {
      const uint64_t wanted = row[word] | matches_[word];
      const uint64_t shifted = row[word] << 1 | shifted_in;
      shifted_in = row[word] >> 63;
      const uint64_t less = wanted - shifted;
      const uint64_t rest = less - borrow;
      borrow = static_cast<uint64_t>(wanted < shifted) | static_cast<uint64_t>(less < borrow);
      row[word] = wanted & ~rest;
    }
    for (const size_t place : found->second) matches_[place / 64] = 0;
  }

 private:
  std::unordered_map<int32_t, std::vector<size_t>> places_;
  Bits matches_;  // all zero between calls
};

// The rows of the table from last to first. Every `stride`-th row is stored, and the rows between
// are recomputed when needed.
class RowsBackwards {
 public:
  RowsBackwards(std::span<const int32_t> rows, std::span<const int32_t> columns)
      : tokens_(rows),
        maker_(columns),
        stride_(static_cast<size_t>(std::sqrt(static_cast<double>(rows.size()))) + 1) {
    Bits row = maker_.first_row();
    for (size_t index = 0; index < rows.size(); ++index) {
      if (index % stride_ == 0) kept_.push_back(row);
      maker_.advance(row, rows[index]);
    }
    if (rows.size() % stride_ == 0) kept_.push_back(row);
  }

  // Row `index` of the table, for the first `index` tokens. Indices must not increase from call to
  // call.
  const Bits& row(size_t index) {
    const size_t block = index / stride_;
    if (block != block_) {
      block_ = block;
      made_.assign(1, kept_[block]);
      const size_t end = std::min(tokens_.size(), (block + 1) * stride_ - 1);
      for (size_t next = block * stride_; next < end; ++next) {
        made_.push_back(made_.back());
        maker_.advance(made_.back(), tokens_[next]);
      }
    }
    return made_[index - block * stride_];
  }

 private:
  std::span<const int32_t> tokens_;
  RowMaker maker_;
  size_t stride_;
  std::vector<Bits> kept_;
  size_t block_ = SIZE_MAX;
  std::vector<Bits> made_;  // rows recomputed for block_
};

}  // namespace

size_t common_subsequence_length(std::span<const int32_t> first, std::span<const int32_t> second) {
  if (first.size() < second.size()) std::swap(first, second);
  RowMaker maker(second);
  Bits row = maker.first_row();
  for (const int32_t token : first) maker.advance(row, token);
  return count_up_to(row, second.size());
}

std::vector<size_t> common_subsequence(std::span<const int32_t> first,
                                       std::span<const int32_t> second) {
  std::vector<size_t> places;
  if (first.empty() || second.empty()) return places;
  RowsBackwards rows(first, second);
  size_t row = first.size();
  size_t column = second.size();
  Bits bits = rows.row(row);
  Bits bits_above = rows.row(row - 1);
  size_t length = count_up_to(bits, column);
  size_t length_above = count_up_to(bits_above, column);
  const auto go_up = [&] {
    --row;
    std::swap(bits, bits_above);
    length = length_above;
    if (row == 0) return;
    bits_above = rows.row(row - 1);
    length_above = count_up_to(bits_above, column);
  };
  while (row > 0 && column > 0 && length > 0) {
    const bool same = first[row - 1] == second[column - 1];
    const size_t length_left = length - (bit_of(bits, column - 1) ? 1 : 0);
    if (same) places.push_back(row - 1);
    const bool goes_up = same || length_left <= length_above;
    if (same || !goes_up) {
      --column;
      length = length_left;
      length_above -= bit_of(bits_above, column) ? 1 : 0;
    }
    if (goes_up) go_up();
  }
  std::reverse(places.begin(), places.end());
  return places;
}

}  // namespace convoy::evaluate
