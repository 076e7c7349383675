// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/unicode_text.h"

#include <convoy_text.h>

#include <algorithm>
#include <array>

namespace convoy::evaluate {
namespace {

constexpr char32_t kNoCharacter = 0xFFFFFFFF;

bool is_of(char32_t code, ConvoyLetterClass wanted) {
  return code != kNoCharacter && convoy_letter_class(code) == wanted;
}

// The result of a function of the Rust library on the whole text.
std::string changed(std::string_view text, decltype(&convoy_text_lowered) change) {
  const ConvoyText result = change(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::string copy(reinterpret_cast<const char*>(result.data), result.size);
  convoy_text_free(result);
  return copy;
}

// Length of the white-space character that begins `text`; 0 when there is none.
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

bool is_letter_or_number(char32_t code) { return is_of(code, CONVOY_LETTER_OR_NUMBER); }

bool is_mark(char32_t code) { return is_of(code, CONVOY_MARK); }

bool is_space(char32_t code) {
  if (code <= 0x20) return code == 0x20 || (code >= 9 && code <= 13) || code >= 0x1C;
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_unspaced(char32_t code) {
  static constexpr std::array<std::array<char32_t, 2>, 13> kScripts = {{{0x2E80, 0x2FDF},
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
  return std::any_of(kScripts.begin(), kScripts.end(),
                     [code](const auto& script) { return code >= script[0] && code <= script[1]; });
}

std::string lowered(std::string_view text) { return changed(text, convoy_text_lowered); }

std::string case_folded(std::string_view text) { return changed(text, convoy_text_case_folded); }

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
