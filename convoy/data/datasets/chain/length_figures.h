// SPDX-License-Identifier: Apache-2.0
//
// Exact statistics of lengths, and their histogram.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace convoy::data {

// One thread. Memory grows with the number of different lengths, not with the number of values
// added.
class LengthFigures {
 public:
  void add(int64_t length) { add(length, 1); }
  void add(int64_t length, int64_t times);

  int64_t count() const { return count_; }
  int64_t total() const { return total_; }
  double mean() const;
  int64_t smallest() const;  // 0 without values
  int64_t largest() const;
  // The smallest length that at least this percentage of all values does not exceed (nearest rank).
  int64_t percentile(double percent) const;
  int64_t count_above(int64_t length) const;

  struct Bin {
    int64_t low = 0;
    int64_t high = 0;  // inclusive
    int64_t count = 0;
  };
  // At most `most_bins` bins. All have the same width, a round number; the first begins at 0 or at
  // the smallest length.
  std::vector<Bin> histogram(int64_t most_bins) const;

 private:
  std::map<int64_t, int64_t> counts_;  // number of values by length
  int64_t count_ = 0;
  int64_t total_ = 0;
};

// Text bars, one line per bin; lines end in '\n'.
std::string histogram_text(const LengthFigures& figures, int64_t columns);
// `mark`: draws a line at this length, such as the longest row that training accepts; 0 = none.
std::string histogram_svg(const LengthFigures& figures, const std::string& title,
                          const std::string& x_label, int64_t mark);

}  // namespace convoy::data
