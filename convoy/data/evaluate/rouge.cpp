// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/rouge.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "convoy/data/evaluate/common_subsequence.h"
#include "convoy/data/evaluate/porter_stemmer.h"
#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

constexpr std::string_view kKelvin = "\u212a";   // its lower case is k
constexpr std::string_view kDottedI = "\u0130";  // its lower case is i with a dot above

// Runs of a-z and 0-9 of the text in lower case. Two characters beyond ASCII have lower-case forms
// that contain ASCII letters.
std::vector<std::string> ascii_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) {
      word.push_back(letter);
    } else if (letter >= 'A' && letter <= 'Z') {
      word.push_back(static_cast<char>(letter - 'A' + 'a'));
    } else if (text.substr(at).starts_with(kKelvin)) {
      word.push_back('k');
      at += kKelvin.size() - 1;
    } else {
      if (text.substr(at).starts_with(kDottedI)) word.push_back('i');
      end_word();
    }
  }
  end_word();
  return words;
}

std::vector<std::string> unicode_words(std::string_view text) {
  const std::string folded = case_folded(text);
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t at = 0; at < folded.size();) {
    const CharacterAt next = character_at(folded, at);
    const bool is_mark_here = is_mark(next.code);
    const bool belongs = is_mark_here || is_letter_or_number(next.code);
    const bool alone = belongs && !is_mark_here && is_unspaced(next.code);
    if (!belongs || alone) end_word();
    if (belongs) word.append(folded, at, next.length);
    if (alone) end_word();
    at += next.length;
  }
  end_word();
  return words;
}

double f_measure(size_t hits, size_t reference, size_t prediction) {
  if (reference == 0 || prediction == 0) return 0;
  const double precision = static_cast<double>(hits) / static_cast<double>(prediction);
  const double recall = static_cast<double>(hits) / static_cast<double>(reference);
  return hits == 0 ? 0 : 2 * precision * recall / (precision + recall);
}

using TokenCounts = std::unordered_map<int32_t, int64_t>;

TokenCounts counted(const std::vector<std::vector<int32_t>>& lines) {
  TokenCounts counts;
  for (const std::vector<int32_t>& line : lines)
    for (const int32_t word : line) ++counts[word];
  return counts;
}

size_t size_of(const std::vector<std::vector<int32_t>>& lines) {
  size_t size = 0;
  for (const std::vector<int32_t>& line : lines) size += line.size();
  return size;
}

}  // namespace

std::vector<std::string> rouge_words(std::string_view text, RougeWords words) {
  if (words == RougeWords::Unicode) return unicode_words(text);
  std::vector<std::string> found = ascii_words(text);
  if (words == RougeWords::Stemmed)
    for (std::string& word : found)
      if (word.size() > 3) word = porter_stem(std::move(word));
  return found;
}

std::vector<int32_t> WordNumbers::of(const std::vector<std::string>& words) {
  std::vector<int32_t> numbers;
  numbers.reserve(words.size());
  for (const std::string& word : words)
    numbers.push_back(numbers_.emplace(word, static_cast<int32_t>(numbers_.size())).first->second);
  return numbers;
}

double rouge_n(const std::vector<int32_t>& reference, const std::vector<int32_t>& prediction,
               size_t n) {
  if (reference.size() < n || prediction.size() < n) return 0;
  const auto grams = [n](const std::vector<int32_t>& words) {
    std::map<std::vector<int32_t>, size_t> counts;
    for (size_t at = 0; at + n <= words.size(); ++at)
      ++counts[{words.begin() + static_cast<ptrdiff_t>(at),
                words.begin() + static_cast<ptrdiff_t>(at + n)}];
    return counts;
  };
  const auto wanted = grams(reference);
  size_t hits = 0;
  for (const auto& [gram, count] : grams(prediction))
    if (const auto found = wanted.find(gram); found != wanted.end())
      hits += std::min(count, found->second);
  return f_measure(hits, reference.size() - n + 1, prediction.size() - n + 1);
}

double rouge_l(const std::vector<int32_t>& reference, const std::vector<int32_t>& prediction) {
  return f_measure(common_subsequence_length(reference, prediction), reference.size(),
                   prediction.size());
}

double rouge_l_sum(const std::vector<std::vector<int32_t>>& reference,
                   const std::vector<std::vector<int32_t>>& prediction) {
  TokenCounts left_of_reference = counted(reference);
  TokenCounts left_of_prediction = counted(prediction);
  size_t hits = 0;
  for (const std::vector<int32_t>& line : reference) {
    std::vector<bool> is_common(line.size());
    for (const std::vector<int32_t>& other : prediction)
      for (const size_t place : common_subsequence(line, other)) is_common[place] = true;
    for (size_t place = 0; place < line.size(); ++place) {
      if (!is_common[place]) continue;
      int64_t& ours = left_of_reference[line[place]];
      int64_t& theirs = left_of_prediction[line[place]];
      if (ours <= 0 || theirs <= 0) continue;
      ++hits;
      --ours;
      --theirs;
    }
  }
  return f_measure(hits, size_of(reference), size_of(prediction));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end != 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace convoy::evaluate
