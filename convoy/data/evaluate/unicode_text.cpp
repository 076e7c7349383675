// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/unicode_text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "convoy/data/evaluate/unicode_tables.h"

namespace convoy::evaluate {
namespace {

constexpr char32_t kNoCharacter = 0xFFFFFFFF;
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

// The range that contains `code`: the last one that does not begin after it; null when there is
// none.
template <class Range>
const Range* range_of(std::span<const Range> ranges, char32_t code) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t wanted, const Range& range) { return wanted < range.first; });
  if (behind == ranges.begin()) return nullptr;
  const Range& range = *std::prev(behind);
  return code <= range.last ? &range : nullptr;
}

bool is_in(std::span<const CharacterRange> ranges, char32_t code) {
  return range_of(ranges, code) != nullptr;
}

bool is_ascii(char32_t code) { return code < 0x80; }

void append(std::string& text, char32_t code) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

char32_t lower_of(char32_t code) {
  if (is_ascii(code)) return code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code;
  const CaseRun* const run = range_of(std::span<const CaseRun>(kLower), code);
  if (run == nullptr || (code - run->first) % run->stride != 0) return code;
  return static_cast<char32_t>(static_cast<int32_t>(code) + run->shift);
}

// True when the capital sigma at `at` ends a word: a cased character before it, none after it.
bool ends_word(std::string_view text, size_t at, std::span<const char32_t> before) {
  const auto cased = std::find_if_not(before.rbegin(), before.rend(),
                                      [](char32_t code) { return is_in(kCaseIgnorable, code); });
  if (cased == before.rend() || !is_in(kCased, *cased)) return false;
  for (at += 2; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    if (!is_in(kCaseIgnorable, next.code)) return !is_in(kCased, next.code);
    at += next.length;
  }
  return true;
}

// Length of the first space in `text`; 0 = it does not begin with one.
size_t leading_space(std::string_view text) {
  const CharacterAt first = character_at(text, 0);
  return is_space(first.code) ? first.length : 0;
}

size_t trailing_space(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    const std::string_view last = text.substr(text.size() - length);
    if (leading_space(last) == length) return length;
  }
  return 0;
}

}  // namespace

CharacterAt character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t place) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[place]));
  };
  const char32_t first = byte(at);
  if (first < 0x80) return {.code = first, .length = 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return {.code = kNoCharacter};
  char32_t code = first & (0x7Fu >> length);
  for (size_t place = at + 1; place < at + length; ++place) {
    if ((byte(place) & 0xC0) != 0x80) return {.code = kNoCharacter};
    code = code << 6 | (byte(place) & 0x3F);
  }
  static constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return {.code = kNoCharacter};
  return {.code = code, .length = length};
}

bool is_letter_or_number(char32_t code) {
  if (is_ascii(code))
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
           (code >= 'a' && code <= 'z');
  return is_in(kLettersAndNumbers, code);
}

bool is_mark(char32_t code) { return is_in(kMarks, code); }

bool is_space(char32_t code) {
  if (code <= 0x20) return code == 0x20 || (code >= 9 && code <= 13) || code >= 0x1C;
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_unspaced(char32_t code) {
  static constexpr std::array<CharacterRange, 13> kScripts = {{{0x2E80, 0x2FDF},
                                                               {0x3005, 0x3007},
                                                               {0x3021, 0x3029},
                                                               {0x3031, 0x30FF},
                                                               {0x3100, 0x312F},
                                                               {0x31A0, 0x31BF},
                                                               {0x31F0, 0x31FF},
                                                               {0x3400, 0x4DBF},
                                                               {0x4E00, 0x9FFF},
                                                               {0xF900, 0xFAFF},
                                                               {0xFF66, 0xFF9F},
                                                               {0x1AFF0, 0x1B16F},
                                                               {0x20000, 0x323AF}}};
  return is_in(kScripts, code);
}

std::string lowered(std::string_view text) {
  std::string low;
  low.reserve(text.size());
  std::vector<char32_t> before;  // all characters, once a capital sigma may ask for them
  const bool may_ask = text.find("\u03a3") != std::string_view::npos;
  for (size_t at = 0; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    if (next.code == kNoCharacter)
      low.push_back(text[at]);
    else if (next.code == 0x130)
      low += "i\u0307";
    else if (next.code == kCapitalSigma && ends_word(text, at, before))
      append(low, kFinalSigma);
    else
      append(low, lower_of(next.code));
    if (may_ask) before.push_back(next.code);
    at += next.length;
  }
  return low;
}

std::string case_folded(std::string_view text) {
  std::string folded;
  folded.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    at += next.length;
    if (next.code == kNoCharacter) {
      folded.push_back(text[at - 1]);
      continue;
    }
    const auto found =
        std::lower_bound(std::begin(kFolds), std::end(kFolds), next.code,
                         [](const CaseFold& fold, char32_t code) { return fold.from < code; });
    if (found == std::end(kFolds) || found->from != next.code) {
      append(folded, lower_of(next.code));
      continue;
    }
    for (const char32_t code : found->to)
      if (code != 0) append(folded, code);
  }
  return folded;
}

std::string_view trimmed(std::string_view text) {
  for (size_t length = 1; !text.empty() && length > 0; text.remove_prefix(length))
    length = leading_space(text);
  for (size_t length = 1; !text.empty() && length > 0; text.remove_suffix(length))
    length = trailing_space(text);
  return text;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    if (is_space(next.code)) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + next.length;
    }
    at += next.length;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
  return words;
}

}  // namespace convoy::evaluate
