// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/sari.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

bool is_decimal_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_point(char letter) { return letter == '.' || letter == ','; }

// True for the ASCII punctuation that mteval-v13a separates: all except ' - . ,
bool is_mark_of_13a(char letter) {
  return (letter >= ' ' && letter <= '&') || (letter >= '(' && letter <= '+') || letter == '/' ||
         (letter >= ':' && letter <= '@') || (letter >= '[' && letter <= '`') ||
         (letter >= '{' && letter <= '~');
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t found = text.find(from); found != std::string_view::npos; found = text.find(from)) {
    result.append(text.substr(0, found)).append(to);
    text.remove_prefix(found + from.size());
  }
  return result.append(text);
}

// Replaces pairs of neighbouring characters for which `fits` is true by the output of `spaced`,
// from left to right, without overlap.
template <class Fits, class Spaced>
std::string pairs_spaced(std::string_view text, Fits fits, Spaced spaced) {
  std::string result;
  result.reserve(text.size() * 2);
  for (size_t at = 0; at < text.size(); ++at) {
    if (at + 1 < text.size() && fits(text[at], text[at + 1])) {
      spaced(result, text[at], text[at + 1]);
      ++at;
    } else {
      result.push_back(text[at]);
    }
  }
  return result;
}

std::string marks_spaced(std::string_view text) {
  std::string result;
  result.reserve(text.size() * 2);
  for (const char letter : text) {
    if (is_mark_of_13a(letter)) {
      result.append({' ', letter, ' '});
    } else {
      result.push_back(letter);
    }
  }
  return result;
}

using GramCounts = std::unordered_map<std::string, double>;

// Subtracts `others` from `counts`, and returns the entries that stay above zero.
GramCounts less(const GramCounts& counts, const GramCounts& others) {
  GramCounts left;
  for (const auto& [gram, count] : counts) {
    const auto other = others.find(gram);
    const double rest = count - (other == others.end() ? 0 : other->second);
    if (rest > 0) left.emplace(gram, rest);
  }
  return left;
}

GramCounts common(const GramCounts& counts, const GramCounts& others) {
  GramCounts both;
  for (const auto& [gram, count] : counts)
    if (const auto other = others.find(gram); other != others.end())
      both.emplace(gram, std::min(count, other->second));
  return both;
}

double sum(const GramCounts& counts) {
  double total = 0;
  for (const auto& [gram, count] : counts) total += count;
  return total;
}

// part / whole, where 0/0 is 1: nothing was required, and nothing was done.
double share(double part, double whole) { return whole > 0 ? part / whole : 1; }

double f_measure(double precision, double recall) {
  return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

// The mean of the shares good / counts over all entries of `counts`.
double mean_share(const GramCounts& good, const GramCounts& counts) {
  double total = 0;
  for (const auto& [gram, count] : good) total += count / counts.at(gram);
  return share(total, static_cast<double>(counts.size()));
}

double kept(const GramCounts& source, const GramCounts& prediction, const GramCounts& references) {
  const GramCounts keeps = common(source, prediction);
  const GramCounts good = common(keeps, references);
  return f_measure(mean_share(good, keeps), share(sum(good), sum(common(source, references))));
}

double deleted(const GramCounts& source, const GramCounts& prediction,
               const GramCounts& references) {
  const GramCounts deletes = less(source, prediction);
  return mean_share(less(deletes, references), deletes);
}

double added(const GramCounts& source, const GramCounts& prediction, const GramCounts& references) {
  double adds = 0;
  double good = 0;
  for (const auto& [gram, count] : prediction) {
    if (source.contains(gram)) continue;
    ++adds;
    if (references.contains(gram)) ++good;
  }
  double wanted = 0;
  for (const auto& [gram, count] : references)
    if (!source.contains(gram)) ++wanted;
  return f_measure(share(good, adds), share(good, wanted));
}

void count_grams(const std::vector<std::string>& words, size_t n, double each, GramCounts& counts) {
  for (size_t at = 0; at + n <= words.size(); ++at) {
    std::string gram = words[at];
    for (size_t next = at + 1; next < at + n; ++next) gram.append(" ").append(words[next]);
    counts[gram] += each;
  }
}

std::vector<std::string> sari_words(std::string_view text) {
  std::vector<std::string> words = words_of_13a(lowered(text));
  if (words.empty()) words.emplace_back();  // a text without words counts as one empty word
  return words;
}

}  // namespace

std::vector<std::string> words_of_13a(std::string_view text) {
  std::string line = replaced(text, "<skipped>", "");
  line = replaced(line, "-\n", "");
  std::replace(line.begin(), line.end(), '\n', ' ');
  static constexpr std::array<std::array<std::string_view, 2>, 4> kEntities = {
      {{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
  if (line.find('&') != std::string::npos)
    for (const auto& [entity, letter] : kEntities) line = replaced(line, entity, letter);
  line = marks_spaced(" " + line + " ");
  line = pairs_spaced(
      line, [](char first, char second) { return !is_decimal_digit(first) && is_point(second); },
      [](std::string& to, char first, char second) {
        to.append({first, ' ', second, ' '});
      });
  line = pairs_spaced(
      line, [](char first, char second) { return is_point(first) && !is_decimal_digit(second); },
      [](std::string& to, char first, char second) {
        to.append({' ', first, ' ', second});
      });
  line = pairs_spaced(
      line, [](char first, char second) { return is_decimal_digit(first) && second == '-'; },
      [](std::string& to, char first, char second) {
        to.append({first, ' ', second, ' '});
      });
  std::vector<std::string> words;
  for (const std::string_view word : split_words(line)) words.emplace_back(word);
  return words;
}

double sari(std::string_view source, std::string_view prediction,
            const std::vector<std::string>& references) {
  const std::vector<std::string> source_words = sari_words(source);
  const std::vector<std::string> prediction_words = sari_words(prediction);
  std::vector<std::vector<std::string>> reference_words;
  for (const std::string& reference : references) reference_words.push_back(sari_words(reference));
  const auto weight = static_cast<double>(references.size());
  double total = 0;
  constexpr size_t kLongest = 4;
  for (size_t n = 1; n <= kLongest; ++n) {
    GramCounts of_source;
    GramCounts of_prediction;
    GramCounts of_references;
    count_grams(source_words, n, weight, of_source);
    count_grams(prediction_words, n, weight, of_prediction);
    for (const auto& words : reference_words) count_grams(words, n, 1, of_references);
    total += kept(of_source, of_prediction, of_references) +
             deleted(of_source, of_prediction, of_references) +
             added(of_source, of_prediction, of_references);
  }
  return total / (3 * kLongest);
}

}  // namespace convoy::evaluate
