// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/natural_order.h"

#include <algorithm>
#include <cstddef>

namespace convoy::data {
namespace {

bool is_decimal_digit(char letter) { return letter >= '0' && letter <= '9'; }

// The digits that begin at `at`, without leading zeros; moves `at` behind them.
std::string_view take_number(std::string_view text, size_t& at) {
  const size_t begin = at;
  while (at < text.size() && is_decimal_digit(text[at])) ++at;
  std::string_view digits = text.substr(begin, at - begin);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool comes_before(std::string_view left, std::string_view right) {
  size_t in_left = 0;
  size_t in_right = 0;
  while (in_left < left.size() && in_right < right.size()) {
    if (is_decimal_digit(left[in_left]) && is_decimal_digit(right[in_right])) {
      const std::string_view one = take_number(left, in_left);
      const std::string_view other = take_number(right, in_right);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
    } else if (left[in_left] != right[in_right]) {
      return static_cast<unsigned char>(left[in_left]) <
             static_cast<unsigned char>(right[in_right]);
    } else {
      ++in_left;
      ++in_right;
    }
  }
  const size_t left_rest = left.size() - in_left;
  const size_t right_rest = right.size() - in_right;
  return left_rest != right_rest ? left_rest < right_rest : left < right;
}

}  // namespace convoy::data
