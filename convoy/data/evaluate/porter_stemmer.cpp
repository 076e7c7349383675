// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/porter_stemmer.h"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace convoy::evaluate {
namespace {

bool is_vowel_letter(char letter) {
  return letter == 'a' || letter == 'e' || letter == 'i' || letter == 'o' || letter == 'u';
}

// For each letter, true for a consonant. A y is a consonant unless a consonant precedes it.
std::vector<bool> consonants(std::string_view word) {
  std::vector<bool> flags;
  flags.reserve(word.size());
  for (const char letter : word)
    flags.push_back(letter == 'y' ? flags.empty() || !flags.back() : !is_vowel_letter(letter));
  return flags;
}

// The measure m of a stem [C](VC){m}[V], where C and V are runs of consonants and of vowels.
int measure(std::string_view stem) {
  const std::vector<bool> flags = consonants(stem);
  int count = 0;
  for (size_t at = 1; at < flags.size(); ++at)
    if (flags[at] && !flags[at - 1]) ++count;
  return count;
}

bool has_vowel(std::string_view stem) {
  for (const bool consonant : consonants(stem))
    if (!consonant) return true;
  return false;
}

bool ends_in_double_consonant(std::string_view word) {
  const size_t size = word.size();
  return size >= 2 && word[size - 1] == word[size - 2] && consonants(word).back();
}

// Porter's condition *o: the word ends with consonant, vowel, consonant (but w, x, y), or is a
// vowel and a consonant.
bool ends_in_short_syllable(std::string_view word) {
  const std::vector<bool> flags = consonants(word);
  const size_t size = word.size();
  if (size == 2) return !flags[0] && flags[1];
  return size >= 3 && flags[size - 3] && !flags[size - 2] && flags[size - 1] &&
         word.back() != 'w' && word.back() != 'x' && word.back() != 'y';
}

struct Rule {
  std::string_view suffix;
  std::string_view replacement;
};

std::string_view without(std::string_view word, std::string_view suffix) {
  return word.substr(0, word.size() - suffix.size());
}

// Applies the first rule whose suffix matches, and no other rule even if its condition fails.
template <class Condition>
std::string apply_rules(const std::string& word, std::span<const Rule> rules, Condition condition) {
  for (const Rule& rule : rules) {
    if (!word.ends_with(rule.suffix)) continue;
    const std::string_view stem = without(word, rule.suffix);
    if (!condition(stem, rule.suffix)) return word;
    return std::string(stem).append(rule.replacement);
  }
  return word;
}

bool has_positive_measure(std::string_view stem, std::string_view) { return measure(stem) > 0; }

std::string plural_removed(const std::string& word) {  // step 1a
  if (word.ends_with("ies") && word.size() == 4) return word.substr(0, 3);
  static constexpr std::array<Rule, 4> kRules = {
      {{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}}};
  return apply_rules(word, kRules, [](std::string_view, std::string_view) { return true; });
}

std::string mended(std::string stem) {  // for step 1b, called when an ending was removed
  for (const std::string_view ending : {"at", "bl", "iz"})
    if (stem.ends_with(ending)) return stem + "e";
  if (ends_in_double_consonant(stem)) {
    const char last = stem.back();
    if (last != 'l' && last != 's' && last != 'z') stem.pop_back();
    return stem;
  }
  if (measure(stem) == 1 && ends_in_short_syllable(stem)) stem += "e";
  return stem;
}

std::string past_removed(const std::string& word) {  // step 1b
  if (word.ends_with("ied")) return word.substr(0, word.size() - (word.size() == 4 ? 1 : 2));
  if (word.ends_with("eed"))
    return measure(without(word, "eed")) > 0 ? word.substr(0, word.size() - 1) : word;
  for (const std::string_view suffix : {"ed", "ing"})
    if (word.ends_with(suffix) && has_vowel(without(word, suffix)))
      return mended(std::string(without(word, suffix)));
  return word;
}

std::string y_replaced(std::string word) {  // step 1c
  if (word.size() > 2 && word.ends_with('y') && consonants(word)[word.size() - 2])
    word.back() = 'i';
  return word;
}

std::string long_suffix_shortened(const std::string& word) {  // step 2
  if (word.ends_with("alli") && measure(without(word, "alli")) > 0)
    return long_suffix_shortened(word.substr(0, word.size() - 2));
  static constexpr std::array<Rule, 22> kRules = {
      {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
       {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
       {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
       {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
       {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
       {"fulli", "ful"},   {"logi", "log"}}};
  return apply_rules(word, kRules, [&word](std::string_view stem, std::string_view suffix) {
    // For "logi" the l is a part of the stem.
    return measure(suffix == "logi" ? without(word, "ogi") : stem) > 0;
  });
}

std::string derived_suffix_removed(const std::string& word) {  // step 3
  static constexpr std::array<Rule, 7> kRules = {{{"icate", "ic"},
                                                  {"ative", ""},
                                                  {"alize", "al"},
                                                  {"iciti", "ic"},
                                                  {"ical", "ic"},
                                                  {"ful", ""},
                                                  {"ness", ""}}};
  return apply_rules(word, kRules, has_positive_measure);
}

std::string last_suffix_removed(const std::string& word) {  // step 4
  static constexpr std::array<Rule, 19> kRules = {{{"al", ""},
                                                   {"ance", ""},
                                                   {"ence", ""},
                                                   {"er", ""},
                                                   {"ic", ""},
                                                   {"able", ""},
                                                   {"ible", ""},
                                                   {"ant", ""},
                                                   {"ement", ""},
                                                   {"ment", ""},
                                                   {"ent", ""},
                                                   {"ion", ""},
                                                   {"ou", ""},
                                                   {"ism", ""},
                                                   {"ate", ""},
                                                   {"iti", ""},
                                                   {"ous", ""},
                                                   {"ive", ""},
                                                   {"ize", ""}}};
  return apply_rules(word, kRules, [](std::string_view stem, std::string_view suffix) {
    return measure(stem) > 1 && (suffix != "ion" || stem.ends_with('s') || stem.ends_with('t'));
  });
}

std::string end_tidied(std::string word) {  // steps 5a and 5b
  if (word.ends_with('e')) {
    const std::string_view stem = without(word, "e");
    const int count = measure(stem);
    if (count > 1 || (count == 1 && !ends_in_short_syllable(stem))) word.pop_back();
  }
  if (word.ends_with("ll") && measure(without(word, "l")) > 1) word.pop_back();
  return word;
}

struct Irregular {
  std::string_view word;
  std::string_view stem;
};

const Irregular* irregular(std::string_view word) {
  static constexpr std::array<Irregular, 16> kWords = {{{"sky", "sky"},
                                                        {"skies", "sky"},
                                                        {"dying", "die"},
                                                        {"lying", "lie"},
                                                        {"tying", "tie"},
                                                        {"news", "news"},
                                                        {"innings", "inning"},
                                                        {"inning", "inning"},
                                                        {"outings", "outing"},
                                                        {"outing", "outing"},
                                                        {"cannings", "canning"},
                                                        {"canning", "canning"},
                                                        {"howe", "howe"},
                                                        {"proceed", "proceed"},
                                                        {"exceed", "exceed"},
                                                        {"succeed", "succeed"}}};
  for (const Irregular& known : kWords)
    if (known.word == word) return &known;
  return nullptr;
}

}  // namespace

std::string porter_stem(std::string word) {
  if (const Irregular* const known = irregular(word)) return std::string(known->stem);
  if (word.size() <= 2) return word;
  word = y_replaced(past_removed(plural_removed(word)));
  word = long_suffix_shortened(word);
  word = derived_suffix_removed(word);
  return end_tidied(last_suffix_removed(word));
}

}  // namespace convoy::evaluate
