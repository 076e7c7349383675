// SPDX-License-Identifier: Apache-2.0
#include "convoy/evaluate/text_match.h"

#include <algorithm>
#include <array>

namespace convoy::evaluate {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Length of the white space that starts at `at`, in any of the spellings that Python's str.strip() removes; 0 = none.
size_t space_at(std::string_view text, size_t at) {
  const char letter = text[at];
  if (letter == ' ' || (letter >= '\t' && letter <= '\r') || (letter >= '\x1c' && letter <= '\x1f'))
    return 1;
  static constexpr std::array<std::string_view, 19> kWide = {
      "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
      "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
      "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
      "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  for (const std::string_view space : kWide)
    if (text.substr(at).starts_with(space)) return space.size();
  return 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    const size_t length = space_at(text, 0);
    if (length == 0) break;
    text.remove_prefix(length);
  }
  for (bool cut = true; cut && !text.empty();) {
    cut = false;
    for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length)
      if (space_at(text, text.size() - length) == length) {
        text.remove_suffix(length);
        cut = true;
        break;
      }
  }
  return text;
}

// "007.50" -> "7.5", "-0" -> "0".
std::string plain_decimal(bool negative, std::string_view whole, std::string_view fraction) {
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  std::string number;
  if (negative && !(whole.empty() && fraction.empty())) number.push_back('-');
  number.append(whole.empty() ? "0" : whole);
  if (!fraction.empty()) number.append(".").append(fraction);
  return number;
}

// The number that starts at `at`; moves `at` behind it. Commas count only between a digit and three digits.
std::string take_number(std::string_view text, size_t& at) {
  const size_t begin = at;
  // A minus belongs to the number unless it stands between two operands, as in "5-3".
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

TextFigures score_samples(const std::vector<Sample>& samples) {
  TextFigures figures;
  figures.count = static_cast<int64_t>(samples.size());
  if (samples.empty()) return figures;
  int64_t exact = 0;
  int64_t numeric = 0;
  bool has_answers = false;
  for (const Sample& sample : samples) {
    if (exact_match(sample.pred, sample.ref)) ++exact;
    if (numeric_match(sample.pred, sample.ref)) ++numeric;
    if (sample.ref.find("####") != std::string::npos) has_answers = true;
  }
  const auto share = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(samples.size());
  };
  figures.exact_match = share(exact);
  if (has_answers) figures.numeric_match = share(numeric);
  return figures;
}

}  // namespace convoy::evaluate
