// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/text_match.h"

#include <algorithm>

#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Normalises a decimal number: "007.50" -> "7.5", "-0" -> "0".
std::string plain_decimal(bool negative, std::string_view whole, std::string_view fraction) {
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  std::string number;
  if (negative && !(whole.empty() && fraction.empty())) number.push_back('-');
  number.append(whole.empty() ? "0" : whole);
  if (!fraction.empty()) number.append(".").append(fraction);
  return number;
}

// The number that begins at `at`, normalised; moves `at` behind it. A comma belongs to the number
// only between a digit and three digits.
std::string take_number(std::string_view text, size_t& at) {
  const size_t begin = at;
  // A minus sign belongs to the number unless it stands between two operands, as in "5-3".
  const size_t sign = begin > 0 && text[begin - 1] == '$' ? begin - 1 : begin;
  const bool negative = sign > 0 && text[sign - 1] == '-' &&
                        (sign < 2 || !(is_digit(text[sign - 2]) || text[sign - 2] == ')'));
  std::string whole;
  std::string fraction;
  const auto three_digits_follow = [&](size_t from) {
    return from + 3 <= text.size() && is_digit(text[from]) && is_digit(text[from + 1]) &&
           is_digit(text[from + 2]) && (from + 3 == text.size() || !is_digit(text[from + 3]));
  };
  while (at < text.size() &&
         (is_digit(text[at]) || (text[at] == ',' && three_digits_follow(at + 1)))) {
    if (text[at] != ',') whole.push_back(text[at]);
    ++at;
  }
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1]))
    for (++at; at < text.size() && is_digit(text[at]); ++at) fraction.push_back(text[at]);
  return plain_decimal(negative, whole, fraction);
}

}  // namespace

bool exact_match(std::string_view pred, std::string_view ref) {
  return trimmed(pred) == trimmed(ref);
}

std::optional<std::string> final_number(std::string_view text) {
  const size_t mark = text.rfind("####");
  if (mark != std::string_view::npos) text.remove_prefix(mark + 4);
  std::optional<std::string> last;
  for (size_t at = 0; at < text.size();) {
    if (is_digit(text[at])) {
      last = take_number(text, at);
    } else {
      ++at;
    }
  }
  return last;
}

bool numeric_match(std::string_view pred, std::string_view ref) {
  const auto wanted = final_number(ref);
  return wanted && final_number(pred) == wanted;
}

}  // namespace convoy::evaluate
