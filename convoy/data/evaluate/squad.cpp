// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/squad.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "convoy/data/evaluate/unicode_text.h"

namespace convoy::evaluate {
namespace {

bool is_punctuation(char letter) {
  return (letter >= '!' && letter <= '/') || (letter >= ':' && letter <= '@') ||
         (letter >= '[' && letter <= '`') || (letter >= '{' && letter <= '~');
}

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

// Replaces every run of letters and numbers that is an article by a space.
std::string without_articles(std::string_view text) {
  std::string result;
  size_t begin = 0;  // start of the run
  const auto end_run = [&](size_t end) {
    const std::string_view run = text.substr(begin, end - begin);
    result.append(is_article(run) ? " " : run);
  };
  for (size_t at = 0; at < text.size();) {
    const CharacterAt next = character_at(text, at);
    if (!is_letter_or_number(next.code)) {
      end_run(at);
      result.append(text, at, next.length);
      begin = at + next.length;
    }
    at += next.length;
  }
  end_run(text.size());
  return result;
}

}  // namespace

std::string squad_normalised(std::string_view text) {
  std::string low = lowered(text);
  std::erase_if(low, is_punctuation);
  const std::string rest = without_articles(low);
  std::string normalised;
  for (const std::string_view word : split_words(rest)) {
    if (!normalised.empty()) normalised.push_back(' ');
    normalised.append(word);
  }
  return normalised;
}

bool squad_match(std::string_view pred, std::string_view ref) {
  return squad_normalised(pred) == squad_normalised(ref);
}

double squad_f1(std::string_view pred, std::string_view ref) {
  const std::string pred_text = squad_normalised(pred);
  const std::string ref_text = squad_normalised(ref);
  const std::vector<std::string_view> pred_words = split_words(pred_text);
  const std::vector<std::string_view> ref_words = split_words(ref_text);
  std::unordered_map<std::string_view, int64_t> left;
  for (const std::string_view word : ref_words) ++left[word];
  double common = 0;
  for (const std::string_view word : pred_words)
    if (const auto found = left.find(word); found != left.end() && found->second-- > 0) ++common;
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(pred_words.size());
  const double recall = common / static_cast<double>(ref_words.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace convoy::evaluate
