// SPDX-License-Identifier: Apache-2.0
//
// Makes damaged texts for parsers of foreign files. A seed gives the same texts on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::testing {

class MutatedTexts {
 public:
  // `whole` holds valid texts of every kind that the parser accepts.
  explicit MutatedTexts(std::vector<std::string> whole, uint32_t seed = 1)
      : whole_(std::move(whole)), random_(seed) {}

  // Returns one of the texts, damaged in one to four places.
  std::string next() {
    std::string text = whole_[below(whole_.size())];
    for (size_t left = 1 + below(4); left > 0; --left) spoil(text);
    return text;
  }

 private:
  // Does not use std::uniform_int_distribution, which differs between libraries.
  size_t below(size_t count) { return random_() % count; }

  void spoil(std::string& text) {
    const size_t at = below(text.size() + 1), count = 1 + below(8);
    switch (below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        return;
      case 2:
        text.insert(at, 1, kMarks[below(kMarks.size())]);
        return;
      case 3:
        text.erase(at, count);
        return;
      case 4:
        text.insert(at, text.substr(below(text.size() + 1), 4 * count));
        return;
      case 5:
        if (below(4) == 0) text.resize(at);
        return;
      case 6:
        text.replace(at, 0, whole_[below(whole_.size())].substr(0, 16 * count));
        return;
      default:
        replace_word(text, at);
    }
  }

  // Replaces the text between two punctuation marks by a value of another type or size.
  void replace_word(std::string& text, size_t at) {
    const size_t mark = text.find_first_of(kMarks, at);
    if (mark == std::string::npos) return;
    const size_t end = std::min(text.find_first_of(kMarks, mark + 1), text.size());
    text.replace(mark + 1, end - mark - 1, kWords[below(kWords.size())]);
  }

  static constexpr std::string_view kMarks = ",:[]{}()\"=-. \n";
  static constexpr std::array<std::string_view, 20> kWords = {"",
                                                              "0",
                                                              "-1",
                                                              "1e999",
                                                              "1e300",
                                                              "-1e300",
                                                              "0.5",
                                                              "2147483648",
                                                              "9223372036854775807",
                                                              "-9223372036854775808",
                                                              "18446744073709551615",
                                                              "99999999999999999999999",
                                                              "null",
                                                              "true",
                                                              "\"\"",
                                                              "[]",
                                                              "{}",
                                                              "[[[[]]]]",
                                                              "\xff\xfe",
                                                              "nan"};

  std::vector<std::string> whole_;
  std::mt19937 random_;
};

struct Outcome {
  int read = 0, refused = 0;
};

template <class Refusal, class... Refusals, class Reading>
bool is_refused(const Reading& reading) {
  try {
    if constexpr (sizeof...(Refusals) > 0)
      return is_refused<Refusals...>(reading);
    else
      reading();
    return false;
  } catch (const Refusal&) {
    return true;
  }
}

// Counts whether `reading` succeeds or throws one of `Refusals`. Another exception is not caught.
template <class... Refusals, class Reading>
void count(Outcome& outcome, const Reading& reading) {
  ++(is_refused<Refusals...>(reading) ? outcome.refused : outcome.read);
}

}  // namespace convoy::testing
